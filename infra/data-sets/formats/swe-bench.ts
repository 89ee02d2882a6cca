import { z } from 'zod';
import { isRecord } from '../../http/client.ts';
import { optional, parseRow, type Row, rowFailure } from '../rows/row.ts';
import { rowFormat } from '../rows/rows.ts';
import { eachCommand } from '../swe/each-command.ts';
import { quote } from '../swe/harbor-files.ts';
import { sweBenchCommands } from '../swe/swe-bench-commands.ts';
import { imageField, instanceId, sweFields } from '../swe/swe-row.ts';
import { sweFiles, workspaceOf } from '../swe/swe-task.ts';
import { sweGymCommands, type TestCommand, type TestCommands, testSelection } from '../swe/test-commands.ts';
import { patchedFiles } from '../swe/test-patch.ts';

const sweBenchRow = z.looseObject({ ...sweFields, version: optional('a version') });
type SweBenchRow = z.output<typeof sweBenchRow>;

/** Repositories whose logs name failures alone (swebench/harness/constants, `FAIL_ONLY_REPOS`). */
const failOnly: readonly string[] = [
  'bpmn-io/bpmn-js',
  'chartjs/Chart.js',
  'eslint/eslint',
  'markedjs/marked',
  'openlayers/openlayers',
  'processing/p5.js',
];

/** What differs between data sets whose rows have the fields of SWE-bench. */
interface Publication {
  /** The image that was published for a row that names none. */
  imageOf(instanceId: string): string;
  readonly commands: TestCommands;
  /** Where such a row is inside of what the file has as one. */
  rowIn?(value: unknown): unknown;
}

/** `django__django-11099` in the names of images, where two underscores may not stand. */
const published = (prefix: string, between: string) => (id: string) =>
  `${prefix}${id.replaceAll('__', between)}:latest`.toLowerCase();

/** SWE-bench, its Lite, Verified and Multimodal parts, and rows in its form. */
export const sweBench = publication({
  imageOf: published('swebench/sweb.eval.x86_64.', '_1776_'),
  commands: sweBenchCommands,
});

/** SWE-Gym and its Lite part. */
export const sweGym = publication({
  imageOf: published('xingyaoww/sweb.eval.x86_64.', '_s_'),
  commands: sweGymCommands,
});

/** The rows that slime makes of SWE-bench: each is `metadata.remote_env_info` of one of its own. */
export const slimeSweBench = publication({
  imageOf: published('swebench/sweb.eval.x86_64.', '_1776_'),
  commands: sweBenchCommands,
  rowIn: (value) => (isRecord(value) && isRecord(value.metadata) ? value.metadata.remote_env_info : undefined),
});

function publication({ imageOf, commands, rowIn = (value) => value }: Publication) {
  return rowFormat({
    idOf: (value) => instanceId(rowIn(value)),
    async toFiles(row, source) {
      const fields = parseRow(sweBenchRow, { ...row, read: () => rowIn(row.read()) });
      const workspace = await workspaceOf(source, fields);
      const named = imageField(fields) ?? source.options.image ?? null;
      const { testCommand, logParser, before, checkedOut } = commandOf(fields, commands, row);
      return sweFiles({
        instruction: fields.problem_statement,
        image: named ?? requirePublished(workspace === null, imageOf(fields.instance_id), row),
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

/** An image that was published for the row brings the repository itself. */
function requirePublished(published: boolean, image: string, row: Row): string {
  if (published) return image;
  const text = 'image: expected the image in which its repository is to be used, got nothing; name one as ?image=';
  throw rowFailure('MalformedTask', row, text);
}

/** What a row says itself comes first; else its repository and version do. */
function commandOf(fields: SweBenchRow, commands: TestCommands, row: Row) {
  const known = commands.find(fields.repo, fields.version);
  const own = eachCommand(fields.test_cmd);
  const logParser = fields.log_parser ?? commands.parser(fields.repo);
  if (logParser === null) throw unknownTests(fields, commands, row, 'log_parser');
  const { before = [], checkedOut = [] } = known ?? {};
  if (own !== '' || fields.eval_script !== null) return { testCommand: own, logParser, before, checkedOut };
  if (known === null) throw unknownTests(fields, commands, row, 'test_cmd or eval_script');
  requireUncompiled(fields, known, row);
  const selection = testSelection(fields.repo, fields.test_patch).map((word) => ` ${quote(word)}`);
  return { testCommand: `${known.command}${selection.join('')}`, logParser, before, checkedOut };
}

function unknownTests({ repo, version }: SweBenchRow, commands: TestCommands, row: Row, field: string) {
  const text = commands.repositories.includes(repo)
    ? `version: expected one of ${repo} whose tests are known (${commands.versions(repo).join(', ')}), or ${field} in the row, got ${JSON.stringify(version)}`
    : `${field}: expected it in the row, or one of the repositories ${commands.repositories.join(', ')}, got repo ${JSON.stringify(repo)}`;
  return rowFailure('UnsupportedTask', row, text);
}

const compiledSource = /\.(?:pyx|pxd|pxi|c|cc|cpp|cxx|h|hpp|f|f90)(?:\.(?:tp|in|src))?$/;

/** An evaluation has neither the network nor the rights for an installation, which would build what is compiled. */
function requireUncompiled({ patch, test_patch }: SweBenchRow, { compiled }: TestCommand, row: Row): void {
  if (compiled !== true) return;
  const paths = [patch ?? '', test_patch].flatMap(patchedFiles).map(({ path }) => path);
  const source = paths.find((path) => compiledSource.test(path));
  if (source === undefined) return;
  const text = `patch: expected a solution in Python alone, since an evaluation builds nothing anew, got a change of ${source}; a test_cmd or eval_script in the row may build it`;
  throw rowFailure('UnsupportedTask', row, text);
}
