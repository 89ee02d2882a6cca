import { z } from 'zod';
import { parseRow, required } from '../rows/row.ts';
import { rowFormat } from '../rows/rows.ts';
import { eachCommand } from '../swe/each-command.ts';
import { quote } from '../swe/harbor-files.ts';
import { instanceId, sweFields } from '../swe/swe-row.ts';
import { sweFiles, withNewline } from '../swe/swe-task.ts';

const sweSmithRow = z.looseObject({
  instance_id: sweFields.instance_id,
  repo: sweFields.repo,
  problem_statement: sweFields.problem_statement,
  /** What breaks the repository. */
  patch: required('the patch that makes the bug'),
  FAIL_TO_PASS: sweFields.FAIL_TO_PASS,
  PASS_TO_PASS: sweFields.PASS_TO_PASS,
  image_name: required('an image'),
  test_cmd: sweFields.test_cmd,
  log_parser: sweFields.log_parser,
});

const pytest = 'pytest --disable-warnings --color=no --tb=no --verbose';

/**
 * SWE-smith: the image holds a repository that works, and the row's patch breaks it. It is applied before the base commit
 * is made; undoing it is the solution. The tests are those of the repository, at their state in the base commit.
 */
export const sweSmith = rowFormat({
  idOf: instanceId,
  toFiles(row) {
    const fields = parseRow(sweSmithRow, row);
    const tests = [...fields.FAIL_TO_PASS, ...fields.PASS_TO_PASS];
    const testFiles = [...new Set(tests.flatMap((test) => test.split('::', 1)).filter((path) => path.endsWith('.py')))];
    const own = eachCommand(fields.test_cmd);
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

/** The patch as a command of its own, since set-up has no files; done once, since set-up may run twice. */
const applyCommand = (patch: string): string => `bug() { cat <<'TEMPER_PATCH'
${withNewline(patch)}TEMPER_PATCH
}
bug | git apply --reverse --check - 2>/dev/null || bug | git apply --whitespace=nowarn -`;
