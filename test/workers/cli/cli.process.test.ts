import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { asCalled, calledAs } from '../../../infra/process/called-as.ts';
import { freePort } from '../../../infra/temporal/ports.ts';
import { buildProgram, commandNames } from '../../../workers/cli/program.ts';
import { writeTinyModel } from '../../helpers/models/tiny-model.ts';

const program = join(import.meta.dirname, '../../../workers/cli.ts');
let home: string;
let port: string;

before(async () => {
  home = await mkdtemp(join(tmpdir(), 'temper-cli-'));
  port = String(await freePort());
});
after(() => rm(home, { recursive: true, force: true }));

it('the help of every command ends with an example', async () => {
  for (const name of commandNames) {
    const command = (await buildProgram(name)).commands.find((one) => one.name() === name);
    let help = '';
    command?.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    assert.match(help, (command?.commands.length ?? 0) > 0 ? /Commands:/ : /Example:\n {2}\$ temper /, name);
  }
  assert.equal((await temper('up', '--help')).code, 0);
});

const wrong: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['an unknown command', ['trian'], /unknown command 'trian', did you mean train\?; see temper --help/],
  ['an unknown command of a command', ['tasks', 'lst'], /unknown command 'lst'[\s\S]*; see temper tasks --help/],
  ['an unknown option', ['up', '--prot', 'auto'], /unknown option '--prot'/],
  ['an invalid number', ['train', '--steps', 'many'], /--steps <n>' argument 'many'.*whole number from 1 to 1000000/],
  ['an invalid choice', ['rollout', '--tasks', '.', '--sandbox', 'vm'], /--sandbox <kind>.*docker, local/],
  [
    'an unknown name in a list',
    ['e2b', 'template', 'some:image', '--agents', 'codex,vim'],
    /--agents <list>.*expected some of claude-code, codex, .*separated by commas, got vim/,
  ],
  ['a missing option', ['rollout'], /required option '--tasks/],
  ['an option that is nearly the required one', ['rollout', '--task', '.'], /'--task', did you mean --tasks\?/],
  ['a missing argument', ['show'], /missing required argument 'id'/],
  ['a --port other than auto', ['up', '--port', '80'], /--port: expected auto, got 80/],
  [
    'a set of tasks that is not there',
    ['rollout', '--tasks', './nowhere'],
    /"\.\/nowhere" is neither a file or directory here nor an address/,
  ],
  [
    'a file of rows that is not there',
    ['tasks', 'validate', 'swe-gym:/nonexistent.jsonl'],
    /there is no file or directory \/nonexistent\.jsonl/,
  ],
  ['an unknown agent', ['rollout', '--tasks', 'generated:test/1', '--agent', 'mimi'], /--agent.*expected .*mini/s],
  [
    'an unknown reward',
    ['rollout', '--tasks', 'generated:test/1', '--reward-policy', 'binry'],
    /--reward-policy.*binary/,
  ],
  [
    'a missing input file',
    ['train', '--input', '/nonexistent.json'],
    /--input: cannot read \/nonexistent.json \(ENOENT\)/,
  ],
];
for (const [what, args, message] of wrong) {
  it(`${what} is a usage error: exit code 2, one message, no stack trace`, async () => {
    const { code, stderr } = await temper(...args);
    assert.equal(code, 2);
    assert.match(stderr, message);
    assert.ok(!/\n\s+at /.test(stderr), stderr);
    assert.ok(!stderr.includes('starting a stack'), stderr);
  });
}

it('an invalid run input is refused before anything starts, with each field, what was expected, and its value', async () => {
  const input = join(home, 'input.json');
  await writeFile(input, JSON.stringify({ steps: 0, settings: { sampling: { temperature: 'hot' } }, typo: 1 }));
  const { code, stderr } = await temper('train', '--input', input);
  assert.equal(code, 2);
  assert.match(stderr, /steps: expected a whole number from 1 to 1000000 steps, got 0/);
  assert.match(stderr, /settings.sampling.temperature: expected a number from 0 to 10, got "hot"/);
  assert.match(stderr, /unknown field typo/);
});

it('an invalid setting in the environment is named', async () => {
  const { code, stderr } = await temperWith({ TEMPER_CAPACITY: 'lots' }, 'status');
  assert.equal(code, 2);
  assert.match(stderr, /TEMPER_CAPACITY: .*got "lots"/);
});

it('a command that needs a stack says at once that no stack runs', async () => {
  const { code, stderr } = await temper('status');
  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`no stack runs on ${home}`));
});

it('tasks are listed without a stack', async () => {
  const { code, stdout } = await temper('tasks', 'list', 'generated:test/1?count=3');
  assert.equal(code, 0);
  assert.equal(stdout.trim().split('\n').length, 3);
});

it('the doctor reports what it found for each check, and fails exactly if something is missing', async () => {
  const { code, stdout } = await temper('doctor', '--json');
  const checks = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const stateOf = (name: string): unknown => checks.find((check) => check.name === name)?.state;
  assert.equal(stateOf('node'), 'ok');
  assert.equal(stateOf('stack'), 'warn');
  for (const { state, remedy } of checks) assert.equal(remedy === null, state === 'ok');
  assert.equal(code, checks.some(({ state }) => state === 'missing') ? 1 : 0);
});

it('the doctor goes through all checks where the sandboxes that are asked for do not work', async () => {
  const { code, stdout } = await temperWith({ TEMPER_SANDBOX: 'kubernetes' }, 'doctor', '--json');
  const checks = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const { state, found } = checks.find(({ name }) => name === 'kubernetes sandbox') ?? {};
  assert.deepEqual([code, state], [1, 'missing']);
  assert.match(found, /not configured/);
  assert.ok(checks.some(({ name }) => name === 'agents'));
});

it('the doctor says which conversations with a model the gateway can extend, and why not', async () => {
  const checksOf = async (dir: string) => {
    const { stdout } = await temper('doctor', '--json', '--model', dir);
    const lines = stdout.trim().split('\n');
    return lines.map((line) => JSON.parse(line)).filter(({ name }) => name === 'model' || name === 'prefix');
  };
  await using appendOnly = await writeTinyModel();
  const kept = await checksOf(appendOnly.dir);
  assert.deepEqual(
    kept.map(({ state }) => state),
    ['ok', 'ok', 'ok', 'ok', 'ok'],
  );
  assert.match(kept[0].found, /hermes/);
  const dropping = "{% for m in messages %}{{ m.role + m.content + '<|im_end|>' }}{% endfor %}";
  await using rewriting = await writeTinyModel(dropping);
  const dropped = (await checksOf(rewriting.dir)).at(-1);
  assert.equal(dropped.state, 'warn');
  assert.match(dropped.found, /a tool result after reasoning forks: the template drops the reasoning/);
  const [none] = await checksOf('/nonexistent');
  assert.deepEqual([none.name, none.state], ['model', 'missing']);
});

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const temper = (...args: readonly string[]): Promise<Run> => temperWith({}, ...args);

function temperWith(settings: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Run> {
  const { TEMPORAL_ADDRESS: _, ...env } = process.env;
  const own = { TEMPER_HOME: home, TEMPER_TEMPORAL_PORT: port, TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml' };
  return new Promise((resolve) => {
    const options = { env: { ...env, ...own, ...settings }, timeout: 600_000 };
    execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

it('hints name the command as it was called', () => {
  const hint = 'start one with `temper up`';
  for (const [env, said] of [
    [{}, '`temper up`'],
    [{ npm_command: 'exec' }, '`npx temper up`'],
    [{ TEMPER_CALLED_AS: 'node infra/setup/temper.mjs' }, '`node infra/setup/temper.mjs up`'],
  ] as const) {
    assert.equal(asCalled(hint, calledAs(env)), `start one with ${said}`);
  }
});
