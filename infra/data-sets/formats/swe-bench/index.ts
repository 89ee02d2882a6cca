import { z } from 'zod';
import { isRecord } from '../../../is-record.ts';
import { optional, parseRow, type Row, rowFailure } from '../../rows/row.ts';
import { rowFormat } from '../../rows/row-format.ts';
import { quote, runAll } from '../../shell.ts';
import { imageField, instanceId, sweFields } from '../../swe/swe-row.ts';
import { checkOutWorkspace, sweFiles } from '../../swe/swe-task.ts';
import { patchedFiles } from '../../swe/test-patch.ts';
import { testSelection } from '../../swe/test-selection.ts';
import { multilingualCommands } from './multilingual-commands.ts';
import { sweBenchCommands } from './swe-bench-commands.ts';
import { sweGymCommands } from './swe-gym-commands.ts';
import { eitherOf, type TestCommand, type TestCommands } from './test-command.ts';

const sweBenchRow = z.looseObject({ ...sweFields, version: optional('a version') });
type SweBenchRow = z.output<typeof sweBenchRow>;

/** Repositories whose logs name only failing tests (swebench/harness/constants, `FAIL_ONLY_REPOS`). */
const failOnly: readonly string[] = [
  'bpmn-io/bpmn-js',
  'chartjs/Chart.js',
  'eslint/eslint',
  'markedjs/marked',
  'openlayers/openlayers',
  'processing/p5.js',
];

/** The differences between data sets whose rows have the fields of SWE-bench. */
interface Variant {
  /** The published image for a row that does not name one. */
  imageOf(instanceId: string): string;
  readonly commands: TestCommands;
  /** Extracts the SWE-bench row from a value that wraps it. */
  unwrap?(value: unknown): unknown;
}

/** Makes an image name from an id such as `django__django-11099`. Image names must not contain two underscores in a row. */
const imageNamed = (prefix: string, separator: string) => (id: string) =>
  `${prefix}${id.replaceAll('__', separator)}:latest`.toLowerCase();

/** SWE-bench with its Lite, Verified, Multimodal and Multilingual subsets, and rows of the same form. */
export const sweBench = createFormat({
  imageOf: imageNamed('swebench/sweb.eval.x86_64.', '_1776_'),
  commands: eitherOf(sweBenchCommands, multilingualCommands),
});

/** SWE-Gym and its Lite subset. */
export const sweGym = createFormat({
  imageOf: imageNamed('xingyaoww/sweb.eval.x86_64.', '_s_'),
  commands: sweGymCommands,
});

/** The rows that slime makes from SWE-bench: each is the `metadata.remote_env_info` of a slime row. */
export const slimeSweBench = createFormat({
  imageOf: imageNamed('swebench/sweb.eval.x86_64.', '_1776_'),
  commands: sweBenchCommands,
  unwrap: (value) => (isRecord(value) && isRecord(value.metadata) ? value.metadata.remote_env_info : undefined),
});

function createFormat({ imageOf, commands, unwrap = (value) => value }: Variant) {
  return rowFormat({
    isOffline: true,
    idOf: (value) => instanceId(unwrap(value)),
    async toFiles(row, source) {
      const fields = parseRow(sweBenchRow, { ...row, read: () => unwrap(row.read()) });
      const workspace = await checkOutWorkspace(source, fields);
      const named = imageField(fields) ?? source.options.image ?? null;
      const { testCommand, logParser, before, checkedOut } = chooseCommand(fields, commands, row);
      return sweFiles({
        instruction: fields.problem_statement,
        image: named ?? publishedImage(workspace === null, imageOf(fields.instance_id), row),
        workdir: fields.workdir ?? '/testbed',
        workspace,
        testPatch: fields.test_patch,
        solution: fields.patch === null ? null : { patch: fields.patch },
        setup: [...(workspace === null ? [] : checkedOut), ...fields.setup],
        before,
        testCommand,
        evalScript: fields.eval_script,
        grading: {
          failToPass: fields.FAIL_TO_PASS,
          passToPass: fields.PASS_TO_PASS,
          logParser,
          ...(failOnly.includes(fields.repo) && { rule: 'fail-only' as const }),
          baseCommit: fields.base_commit,
        },
      });
    },
  });
}

/** The image that was published for a row. It contains the repository, so it cannot be used with one from a mirror. */
function publishedImage(containsRepository: boolean, image: string, row: Row): string {
  if (containsRepository) return image;
  const text = 'image: expected an image for the repository from ?repositories=, got nothing; name one with ?image=';
  throw rowFailure('MalformedTask', row, text);
}

/** Chooses the test command: the row's own, else the known one of its repository and version. */
function chooseCommand(fields: SweBenchRow, commands: TestCommands, row: Row) {
  const known = commands.find(fields.repo, fields.version);
  const own = runAll(fields.test_cmd);
  const logParser = fields.log_parser ?? commands.parser(fields.repo);
  if (logParser === null) throw unknownCommand(fields, commands, row, 'log_parser');
  const { before = [], checkedOut = [] } = known ?? {};
  if (own !== '' || fields.eval_script !== null) return { testCommand: own, logParser, before, checkedOut };
  if (known === null) throw unknownCommand(fields, commands, row, 'test_cmd or eval_script');
  requireUncompiled(fields, known, row);
  const selection = known.namesTests ? [] : testSelection(fields.repo, fields.test_patch);
  const testCommand = [known.command, ...selection.map(quote)].join(' ');
  return { testCommand, logParser, before, checkedOut };
}

function unknownCommand({ repo, version }: SweBenchRow, commands: TestCommands, row: Row, field: string) {
  const text = commands.repositories.includes(repo)
    ? `version: expected a version of ${repo} whose test command is known (${commands.versions(repo).join(', ')}), or ${field} in the row, got ${JSON.stringify(version)}`
    : `${field}: expected it in the row, or one of the repositories ${commands.repositories.join(', ')}, got repo ${JSON.stringify(repo)}`;
  return rowFailure('UnsupportedTask', row, text);
}

const compiledSource = /\.(?:pyx|pxd|pxi|c|cc|cpp|cxx|h|hpp|f|f90)(?:\.(?:tp|in|src))?$/;

/** Rejects changes of compiled sources: an evaluation has neither the network nor the permissions to build them. */
function requireUncompiled({ patch, test_patch }: SweBenchRow, { compiled }: TestCommand, row: Row): void {
  if (compiled !== true) return;
  const paths = [patch ?? '', test_patch].flatMap(patchedFiles).map(({ path }) => path);
  const source = paths.find((path) => compiledSource.test(path));
  if (source === undefined) return;
  const text = `patch: expected a solution in Python alone, since an evaluation does not compile, got a change of ${source}; give the row a test_cmd or eval_script that compiles it`;
  throw rowFailure('UnsupportedTask', row, text);
}
