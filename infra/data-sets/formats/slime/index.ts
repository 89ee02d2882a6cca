import { readFile, realpath } from 'node:fs/promises';
import { dirname, resolve, sep } from 'node:path';
import { z } from 'zod';
import { harborFiles, script, text } from '../../../harbor/harbor-files.ts';
import { isRecord } from '../../../is-record.ts';
import type { FileTree } from '../../../sandbox/files.ts';
import {
  maybeJson,
  optional,
  parseRow,
  type Row,
  required,
  rowFailure,
  textList,
  textsOrText,
} from '../../rows/row.ts';
import { rowFormat } from '../../rows/row-format.ts';
import { quote, writeExitCodeReward } from '../../shell.ts';
import { type SetupScript, splitSetupScript } from './setup-script.ts';

const swepro = z.looseObject({
  run_script_path: required('the path of a script'),
  parser_script_path: required('the path of a Python file'),
  selected_test_files: textList('test file'),
  fail_to_pass: textList('test name'),
  pass_to_pass: textList('test name'),
  before_repo_set_cmd: optional('shell commands'),
});
type Swepro = z.output<typeof swepro>;

const fields = {
  instance_id: optional('the name of the task'),
  workdir: optional('a directory'),
  pre_commands: textsOrText('shell command'),
};

const slimeRow = z.looseObject({
  /** A text, or messages; the user's messages are then the text. */
  prompt: z.unknown().optional(),
  metadata: maybeJson(
    z.looseObject(
      {
        ...fields,
        image: optional('an image'),
        problem_statement: optional('the text of the issue'),
        eval_cmd: optional('a shell command'),
        swepro: swepro.nullish(),
        remote_env_info: z
          .looseObject({ ...fields, image_url: optional('an image'), f2p_script: optional('a Python program') })
          .nullish(),
      },
      { error: 'expected an object' },
    ),
  ),
});
type SlimeRow = z.output<typeof slimeRow>;

/**
 * slime's rows with an environment of their own (`scaleswe`). They are judged by a run script and a parser script (`swepro`),
 * else by the exit code of `eval_cmd`, else by that of `f2p_script`, in slime's order. The verdict comes from inside the
 * evaluation's sandbox. Scripts that a row names by path are read relative to the file of the row.
 */
export const slime = rowFormat({
  idOf(value) {
    const metadata = isRecord(value) && isRecord(value.metadata) ? value.metadata : {};
    const remote = isRecord(metadata.remote_env_info) ? metadata.remote_env_info : {};
    const id = metadata.instance_id ?? remote.instance_id ?? (isRecord(value) ? value.label : null);
    return typeof id === 'string' && id !== '' && id.length < 256 ? id : null;
  },
  async toFiles(row, { options }) {
    const { prompt, metadata } = parseRow(slimeRow, row);
    const remote = metadata.remote_env_info;
    const image = metadata.image ?? remote?.image_url ?? options.image;
    if (image === undefined) throw rowFailure('MalformedTask', row, 'metadata.image: expected an image, got nothing');
    const workdir = metadata.workdir ?? remote?.workdir ?? '/testbed';
    const repository = readSetupScript(metadata.swepro, row);
    const commands = metadata.pre_commands.length > 0 ? metadata.pre_commands : (remote?.pre_commands ?? []);
    return harborFiles({
      instruction: instructionOf(prompt, metadata.problem_statement, row),
      image,
      workdir,
      setup: [...repository.setup, ...commands],
      hiddenTests: repository.hiddenTests,
      evaluationTimeoutSec: 1_800,
      tests: await testsOf(metadata, workdir, row),
      testsInRepository: true,
      protectedFiles: [...(metadata.swepro?.selected_test_files ?? []), ...repository.hiddenTestFiles],
    });
  },
});

function readSetupScript(harness: Swepro | null | undefined, row: Row): SetupScript {
  const split = splitSetupScript(harness?.before_repo_set_cmd ?? '');
  if (!('rejected' in split)) return split;
  const expected = 'expected git reset, clean and checkout, and at the end git checkout <commit> -- <test files>';
  const got = JSON.stringify(split.rejected.slice(0, 200));
  throw rowFailure('UnsupportedTask', row, `metadata.swepro.before_repo_set_cmd: ${expected}, got ${got}`);
}

function instructionOf(prompt: unknown, statement: string | null, row: Row): string {
  const messages = Array.isArray(prompt) ? prompt.filter((one) => isRecord(one) && one.role === 'user') : [];
  const asked = typeof prompt === 'string' ? prompt : messages.map(({ content }) => textOf(content)).join('\n\n');
  const instruction = statement ?? asked;
  if (instruction.trim() !== '') return instruction;
  throw rowFailure('MalformedTask', row, 'metadata.problem_statement: expected the text of the issue, got nothing');
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : '')).join('\n');
}

async function testsOf(metadata: SlimeRow['metadata'], workdir: string, row: Row): Promise<FileTree> {
  const enter = `#!/bin/bash\ncd ${quote(workdir)} || exit 1\n`;
  const f2pScript = metadata.remote_env_info?.f2p_script ?? null;
  if (metadata.swepro) return sweproTests(metadata.swepro, enter, row);
  if (metadata.eval_cmd !== null) {
    const runEvalCmd = `bash /tests/eval.sh\n${writeExitCodeReward}`;
    return new Map([
      ['test.sh', script(`${enter}${runEvalCmd}`)],
      ['eval.sh', script(`${metadata.eval_cmd}\n`)],
    ]);
  }
  if (f2pScript === null) {
    throw rowFailure(
      'MalformedTask',
      row,
      'metadata: expected swepro, eval_cmd or remote_env_info.f2p_script, got none',
    );
  }
  return new Map([
    ['test.sh', script(`${enter}python /tests/f2p.py\n${writeExitCodeReward}`)],
    ['f2p.py', text(f2pScript)],
  ]);
}

/**
 * The Python program that passes when the parser's result lists every required test as passed and none of them as failed too.
 * A run with a failing exit code is believed only if its report names a failure; otherwise something ended the run early or
 * forged its report.
 */
const compare = `import json, sys
result, required = (json.load(open(path)) for path in sys.argv[1:3])
named = lambda *statuses: {test["name"] for test in result["tests"] if test["status"] in statuses}
failed = named("FAILED", "ERROR")
passed = named("PASSED") - failed
if sys.argv[3] != "0" and not failed:
    sys.exit(f"the report is not trusted: the run ended with exit code {sys.argv[3]}, but its report names no failure")
missing = [name for name in required if name not in passed]
print("\\n".join(f"not passed: {name}" for name in missing))
sys.exit(1 if missing else 0)
`;

async function sweproTests(harness: Swepro, enter: string, row: Row): Promise<FileTree> {
  const required = [...new Set([...harness.fail_to_pass, ...harness.pass_to_pass])];
  if (required.length === 0) {
    throw rowFailure('MalformedTask', row, 'metadata.swepro.fail_to_pass: expected at least one test name, got none');
  }
  const run = `bash /tests/run_script.sh ${quote(harness.selected_test_files.join(','))}`;
  const test = `${enter}out=$(mktemp -d)
${run} > "$out/stdout.log" 2> "$out/stderr.log"
ran=$?
cat "$out/stdout.log" "$out/stderr.log"
python3 /tests/parser.py "$out/stdout.log" "$out/stderr.log" "$out/result.json" &&
  python3 /tests/compare.py "$out/result.json" /tests/required.json "$ran"
${writeExitCodeReward}`;
  return new Map([
    ['test.sh', script(test)],
    ['run_script.sh', script(await readNextTo(row, harness.run_script_path, 'run_script_path'))],
    ['parser.py', text(await readNextTo(row, harness.parser_script_path, 'parser_script_path'))],
    ['compare.py', text(compare)],
    ['required.json', text(JSON.stringify(required))],
  ]);
}

/** Reads a file below the directory of the row's file. A row must not read other files of the host. */
async function readNextTo(row: Row, path: string, field: string): Promise<string> {
  const root = await realpath(dirname(row.file));
  const found = await realpath(resolve(root, path)).catch(() => null);
  if (found?.startsWith(root + sep)) return readFile(found, 'utf8');
  const got = found === null ? `${path}, which does not exist` : path;
  throw rowFailure('MalformedTask', row, `metadata.swepro.${field}: expected a file below ${root}, got ${got}`);
}
