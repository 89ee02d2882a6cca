import { z } from 'zod';
import { maybeJson, optional, parseRow, rowFailure, textsOrText } from '../rows/row.ts';
import { rowFormat } from '../rows/row-format.ts';
import { quote, runAll } from '../shell.ts';
import { imageField, instanceId, sweFields } from '../swe/swe-row.ts';
import { checkOutWorkspace, sweFiles } from '../swe/swe-task.ts';
import { testSelection } from '../swe/test-selection.ts';

const sweRebenchRow = z.looseObject({
  ...sweFields,
  install_config: maybeJson(
    z.looseObject(
      { test_cmd: textsOrText('shell command'), log_parser: optional('the name of a log parser') },
      { error: 'expected an object with test_cmd' },
    ),
  ),
});

/** SWE-rebench: each row names its image, its test command and its log parser. */
export const sweRebench = createFormat({ workdirOf: () => '/testbed', selectsTests: true });

/** SWE-rebench-V2, with many languages: the workdir has the name of the repository, and the command selects its tests. */
export const sweRebenchV2 = createFormat({ workdirOf: (repo) => `/${repo.split('/').at(-1)}`, selectsTests: false });

interface RebenchVersion {
  workdirOf(repo: string): string;
  /** Whether the tests of the test patch are appended to the row's command. */
  readonly selectsTests: boolean;
}

function createFormat(version: RebenchVersion) {
  return rowFormat({
    isOffline: true,
    idOf: instanceId,
    async toFiles(row, source) {
      const fields = parseRow(sweRebenchRow, row);
      const { test_cmd, log_parser } = fields.install_config;
      const image = imageField(fields) ?? source.options.image;
      if (image === undefined) throw rowFailure('MalformedTask', row, 'docker_image: expected an image, got nothing');
      if (test_cmd.length === 0) {
        throw rowFailure('MalformedTask', row, 'install_config.test_cmd: expected a shell command, got nothing');
      }
      const selection = version.selectsTests ? testSelection(fields.repo, fields.test_patch).map(quote) : [];
      return sweFiles({
        instruction: fields.problem_statement,
        image,
        workdir: fields.workdir ?? version.workdirOf(fields.repo),
        workspace: await checkOutWorkspace(source, fields),
        testPatch: fields.test_patch,
        solution: fields.patch === null ? null : { patch: fields.patch },
        setup: fields.setup,
        testCommand: runAll(test_cmd.with(-1, [test_cmd.at(-1), ...selection].join(' '))),
        evalScript: fields.eval_script,
        grading: {
          failToPass: fields.FAIL_TO_PASS,
          passToPass: fields.PASS_TO_PASS,
          logParser: log_parser ?? fields.log_parser ?? 'parse_log_pytest',
          baseCommit: fields.base_commit,
        },
      });
    },
  });
}
