import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { programFiles } from '../../../infra/agents/runtime.ts';
import { withCheckoutBuild } from '../../helpers/checkout-build.ts';
import { repositoryRoot } from '../../helpers/sources.ts';

const run = promisify(execFile);

/** The paths that the package may hold: compiled code of the product, the files it reads, and the program that starts it. */
const productPaths = [
  /^dist\/(?:workflows|activities|workers|infra)\//,
  /^dist\/workflow-bundle\.js$/,
  // Before version 10, npm packs the README of each folder from which it packs a file.
  /^infra\/(?:setup|process)\/(?:[a-z-]+\.mjs|README\.md)$/,
  /^(?:package\.json|README\.md|LICENSE)$/,
];

/** The paths that stay in the repository although they lie below a product folder. */
const laboratoryPaths = /(?<!\.d)\.m?ts$|\.test\.|\/(?:bench|recipe)\/|\/setup\/build\./;

/** The sources of a project that has an agent, a task and a reward of its own, in strict TypeScript. */
const project: Readonly<Record<string, string>> = {
  'tsconfig.json': JSON.stringify({
    compilerOptions: { strict: true, exactOptionalPropertyTypes: true, module: 'nodenext', target: 'es2024' },
    include: ['*.ts'],
  }),
  'agent.ts': `import { defineAgent, z } from 'temper/agent';
export default defineAgent({
  name: 'own', description: 'runs a script', usesModel: false, needsSolution: true,
  options: { script: z.string().default('/missing').describe('The script.') },
  runtimes: async () => [],
  command: ({ options }) => ({ argv: ['bash', options.script.trim()], env: {}, files: new Map() }),
  stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
});
`,
  'tasks.ts': `import { defineTasks, filesOf, readHarborTask } from 'temper/task-source';
const reward = '/logs/verifier/reward.txt';
const files = filesOf({
  'task.toml': '[environment]\\ndocker_image = "any"\\nworkdir = "/workspace"\\n',
  'instruction.md': 'Write right into answer.',
  'environment/workspace/answer': 'wrong',
  'solution/solve.sh': 'printf right > /workspace/answer',
  'tests/test.sh': \`if [ "$(cat /workspace/answer)" = right ]; then echo 1; else echo 0; fi > \${reward}\`,
});
export const cpus: number = readHarborTask(files).description.cpus;
export default defineTasks({ tasks: () => [{ id: 'made', files: async () => files }] });
`,
  'reward.ts': `import { defineReward, type RewardPolicy, rewardOf, type Verdict } from 'temper/reward';
export const halved = (verdict: Verdict, policy: RewardPolicy): number => rewardOf(verdict, policy) / 2;
export default defineReward({ name: 'halved', reward: (verdict) => halved(verdict, 'binary') });
`,
  'tool.ts': `import { defineHostTool, z } from 'temper/host-tool';
export default defineHostTool({
  name: 'repeat', description: 'Repeats a text.', input: { text: z.string(), times: z.int() },
  call: ({ text, times }, { calls }) => text.repeat(times + calls.length),
});
`,
};

describe('the packed package, installed in an empty folder', () => {
  let directory = '';
  let files: readonly string[] = [];
  const inFolder = (): string => join(directory, 'app');
  const environment = (): NodeJS.ProcessEnv => {
    const kept = Object.entries(process.env).filter(([name]) => !/^(?:TEMPORAL_|TEMPER_|NODE_TEST_|npm_)/.test(name));
    return {
      ...Object.fromEntries(kept),
      PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
      TEMPER_HOME: join(directory, 'home'),
      TEMPER_AGENTS: './agent.ts',
      // Node never removes compiled code from the cache that the tests share, and no later run has the paths of this folder.
      NODE_COMPILE_CACHE: join(directory, 'compiled'),
    };
  };

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-package-'));
    await mkdir(inFolder());
    const pack = ['pack', '--pack-destination', directory, '--loglevel=error'];
    await withCheckoutBuild(() => run('npm', pack, { cwd: repositoryRoot }));
    const archive = (await readdir(directory)).find((name) => name.endsWith('.tgz')) ?? assert.fail('no archive');
    await writeFile(join(inFolder(), 'package.json'), '{ "private": true, "type": "module" }');
    const install = [
      'install',
      join(directory, archive),
      '--prefer-offline',
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
    ];
    await run('npm', install, { cwd: inFolder(), env: environment() });
    const entries = await readdir(join(inFolder(), 'node_modules/temper'), { recursive: true, withFileTypes: true });
    const root = join(inFolder(), 'node_modules/temper/');
    files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
      .filter((path) => !path.startsWith('node_modules/'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  it('holds the product, and neither sources, tests, benchmarks nor recipe searches', () => {
    assert.deepEqual(
      files.filter((file) => !productPaths.some((path) => path.test(file)) || laboratoryPaths.test(file)),
      [],
    );
    for (const file of [
      'dist/workers/cli.js',
      'dist/infra/temporal/cli/go.sum',
      'dist/infra/agents/pi/package-lock.json',
    ]) {
      assert.ok(files.includes(file), `expected ${file} in the package`);
    }
  });

  it('has the programs of sandboxes as a checkout makes them, because an image of programs is made there', async () => {
    const packed = await import(join(inFolder(), 'node_modules/temper/dist/infra/agents/runtime.js'));
    assert.deepEqual(await packed.programFiles(), await programFiles());
  });

  it('uses its prebuilt workflow bundle', async () => {
    const bundle = join(inFolder(), 'node_modules/temper/dist/infra/temporal/bundle.js');
    const script = `const { locateWorkflowBundle } = await import(${JSON.stringify(bundle)}); console.log((await locateWorkflowBundle({})).codePath);`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], { env: environment() });
    assert.equal(stdout.trim(), join(inFolder(), 'node_modules/temper/dist/workflow-bundle.js'));
  });

  it('gives the types of agents, tasks and rewards to a project that is strict', async () => {
    for (const [path, source] of Object.entries(project)) await writeFile(join(inFolder(), path), source);
    const tsc = join(repositoryRoot, 'node_modules/.bin/tsc');
    const compile = () =>
      run(tsc, ['--noEmit', '-p', inFolder()]).catch(({ stdout }: { stdout: string }) => ({ stdout }));
    assert.equal((await compile()).stdout, '');
    const wrong = project['agent.ts']?.replace('script.trim()', 'script.missing()') ?? '';
    await writeFile(join(inFolder(), 'wrong.ts'), wrong);
    assert.match((await compile()).stdout, /wrong\.ts.*'missing' does not exist on type 'string'/);
  });

  it("runs `temper up`, a rollout of the project's own agent and task on it, and stops", async () => {
    const temper = join(inFolder(), 'node_modules/.bin/temper');
    const stack = spawn(temper, ['up', '--port', 'auto'], {
      cwd: inFolder(),
      env: environment(),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await untilReady(stack);
      const agent = 'own?script=/solution/solve.sh';
      const rollout = ['rollout', '--tasks', 'module:./tasks.ts', '--agent', agent, '--sandbox', 'local'];
      const { stdout } = await run(temper, [...rollout, '--json', '--no-up'], { cwd: inFolder(), env: environment() });
      const { outcome, reward, agent: ran } = JSON.parse(stdout);
      assert.deepEqual([outcome, reward, ran], ['scored', 1, agent]);
      const exited = once(stack, 'exit');
      stack.kill('SIGINT');
      assert.deepEqual(await exited, [0, null]);
    } finally {
      stack.kill('SIGKILL');
    }
  });
});

/** Waits for the last line of the table that `temper up` prints as soon as every part runs. */
async function untilReady(stack: ChildProcess): Promise<void> {
  const seen: string[] = [];
  for await (const line of createInterface({ input: stack.stdout ?? assert.fail('no output') })) {
    seen.push(line);
    if (/^home\s/.test(line)) return;
  }
  assert.fail(`expected the stack to become ready, got ${seen.join('\n')}`);
}
