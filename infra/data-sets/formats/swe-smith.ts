import { z } from 'zod';
import { parseRow, required } from '../rows/row.ts';
import { rowFormat } from '../rows/row-format.ts';
import { quote, runAll } from '../shell.ts';
import { instanceId, sweFields } from '../swe/swe-row.ts';
import { sweFiles, withNewline } from '../swe/swe-task.ts';

const sweSmithRow = z.looseObject({
  instance_id: sweFields.instance_id,
  repo: sweFields.repo,
  problem_statement: sweFields.problem_statement,
  /** The patch that breaks the repository. */
  patch: required('the patch that makes the bug'),
  FAIL_TO_PASS: sweFields.FAIL_TO_PASS,
  PASS_TO_PASS: sweFields.PASS_TO_PASS,
  image_name: required('an image'),
  test_cmd: sweFields.test_cmd,
  log_parser: sweFields.log_parser,
});

const pytest = 'pytest --disable-warnings --color=no --tb=no --verbose';

/**
 * SWE-smith: the image contains a working repository, and the row's patch adds a bug. The patch is applied before the base
 * commit is made, and reverting it is the solution. The tests are those of the repository at the base commit.
 */
export const sweSmith = rowFormat({
  isOffline: true,
  idOf: instanceId,
  toFiles(row) {
    const fields = parseRow(sweSmithRow, row);
    const tests = [...fields.FAIL_TO_PASS, ...fields.PASS_TO_PASS];
    const testFiles = [...new Set(tests.flatMap((test) => test.split('::', 1)).filter((path) => path.endsWith('.py')))];
    const own = runAll(fields.test_cmd);
    return sweFiles({
      instruction: fields.problem_statement,
      image: fields.image_name,
      workdir: '/testbed',
      workspace: null,
      testPatch: '',
      testFiles,
      solution: { patch: fields.patch, reverse: true },
      setup: [applyCommand(fields.patch)],
      testCommand: own === '' ? [pytest, ...testFiles.map(quote)].join(' ') : own,
      evalScript: null,
      grading: {
        failToPass: fields.FAIL_TO_PASS,
        passToPass: fields.PASS_TO_PASS,
        logParser: fields.log_parser ?? 'parse_log_pytest',
      },
    });
  },
});

/** The set-up command that applies the patch. It contains the patch, since set-up has no files, and does nothing if run again. */
const applyCommand = (patch: string): string => `bug() { cat <<'TEMPER_PATCH'
${withNewline(patch)}TEMPER_PATCH
}
bug | git apply --reverse --check - 2>/dev/null || bug | git apply --whitespace=nowarn -`;
