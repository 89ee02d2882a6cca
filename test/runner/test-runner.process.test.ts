import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import Docker from 'dockerode';
import { isRunning, processIdentity } from '../../infra/process/process-identity.mjs';
import { repositoryRoot } from '../helpers/sources.ts';
import { probeDocker } from './docker.ts';
import { type Need, needsOf, needWords } from './need.ts';
import { selectFastTests, selectTests, selectTestsOf } from './select.ts';

const missing = (name: string): Need => ({
  word: name.toLowerCase(),
  name,
  availability: { usable: false, reason: `no ${name} here` },
  providedInCi: true,
});

describe('npm test', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-runner-'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  it('ends with the counts alone on the last line, and exits 0', async () => {
    const { code, lines } = await runTests("test('works', () => {});", {});
    assert.deepEqual([lines.at(-1), code], ['1 passed, 0 failed', 0]);
  });

  it('counts a failed test, a file that does not load, and skipped ones', async () => {
    const { code, lines } = await runTests("test('a', { skip: 'why' }, () => {}); test('b', () => { throw 1; });", {});
    assert.deepEqual([lines.at(-1), lines.at(-2), code], ['0 passed, 1 failed, 1 skipped', 'skipped: a', 1]);
    const broken = await runTests("throw new Error('while loading');", {});
    assert.deepEqual([broken.lines.at(-1), broken.code], ['0 passed, 1 failed', 1]);
  });

  it('fails in CI when something was skipped', async () => {
    const { code, lines } = await runTests("test('a', { skip: 'why' }, () => {});", { CI: 'true' });
    assert.ok(lines.includes('✖ skipped in CI: a'));
    assert.equal(code, 1);
  });

  it('fails in CI when there is no Docker', async () => {
    const { code, lines } = await runTests("test('a', () => {});", { CI: 'true', DOCKER_HOST: 'unix:///nowhere.sock' });
    assert.ok(lines.some((line) => line.startsWith('✖ CI must provide Docker: no Docker engine answers')));
    assert.equal(code, 1);
  });

  it('hides the Docker engine from a file whose name does not say that it needs one', async () => {
    const seen = "test('a', () => { throw new Error('the engine is ' + process.env.DOCKER_HOST); });";
    const engine = 'unix:///of-this-test.sock';
    const engineOf = async (needs: string) => {
      const { lines } = await runTests(seen, { DOCKER_HOST: engine }, needs);
      return /the engine is (\S+)/.exec(lines.join('\n'))?.[1];
    };
    assert.equal(await engineOf(''), 'unix:///hidden-by-the-test-runner/docker.sock');
    assert.equal(await engineOf('.docker.process'), engine);
  });

  it('kills what a test left behind and says so', { skip: process.platform !== 'linux' }, async () => {
    const leave = "test('a', () => spawn('sleep', ['600'], { detached: true, stdio: 'ignore' }).unref());";
    const { lines } = await runTests(leave, {});
    const pid = Number(/^left behind: process (\d+) sleep 600$/.exec(lines.at(-2) ?? '')?.[1]);
    assert.equal(isRunning(processIdentity(pid)), false);
  });

  it('fails a test that hangs, and ends its process even while something keeps that busy', async () => {
    const hangs = "test('hangs', () => new Promise(() => setInterval(() => {}, 1_000)));";
    const { code, lines } = await runTests(hangs, { TEMPER_TEST_MINUTES: '0.05' });
    assert.ok(lines.some((line) => /^ *✖ hangs/.test(line)));
    assert.ok(lines.some((line) => line.endsWith('expected to end within 6 s; the process is ended')));
    assert.equal(code, 1);
  });

  it('leaves out the tests that need what is missing, and only those', async () => {
    const everything = (await selectTests(repositoryRoot, [])).files;
    for (const name of ['Docker', 'compose', 'bubblewrap', 'data']) {
      const need = missing(name);
      const { files, leftOut } = await selectTests(repositoryRoot, [need]);
      const [left = assert.fail(), ...others] = leftOut;
      assert.deepEqual([left.need, left.reason, others], [need, `no ${name} here`, []]);
      assert.deepEqual([...files, ...left.files].sort(), everything);
      assert.ok(left.files.length > 0 && left.files.every((file) => needsOf(file).includes(need.word)));
      assert.ok(files.includes('test/architecture.test.ts'));
    }
    assert.ok(everything.every((file) => !file.endsWith('.reference.test.ts')));
  });

  it('names the tests of a suite that lack something else than the suite needs', async () => {
    const everything = (await selectTestsOf(repositoryRoot, [], 'kubernetes')).files;
    for (const word of ['s3', 'machines']) {
      const { files, leftOut } = await selectTestsOf(repositoryRoot, [missing(word)], 'kubernetes');
      const left = leftOut.flatMap((one) => one.files);
      assert.deepEqual([...files, ...left].sort(), everything);
      assert.ok(left.length > 0 && left.every((file) => needsOf(file).includes(word)));
    }
  });

  it('fails a suite that needs a cluster where none can be started, and names its tests in the last lines', async () => {
    const { code, lines } = await runTemperTest(['--kubernetes'], { TEMPER_TEST_KUBERNETES: '/nowhere/stack' });
    const { files } = await selectTestsOf(repositoryRoot, [], 'kubernetes');
    assert.deepEqual(lines.slice(-3 - files.length), [
      'tests that need a Kubernetes cluster were left out, because this machine lacks /nowhere/stack:',
      ...files.map((file) => `  ${file}`),
      '✖ no test of this suite can run here',
      '0 passed, 1 failed',
    ]);
    assert.equal(code, 1);
  });

  it('runs a suite once, on PostgreSQL where that is possible', async () => {
    const [plain, onPostgres] = ['kills.sandbox.process', 'kills.sandbox.process.postgres'].map(
      (name) => `test/faults/${name}.test.ts`,
    );
    const ran = async (needs: readonly Need[]) =>
      (await selectTests(repositoryRoot, needs)).files.filter((file) => file === plain || file === onPostgres);
    assert.deepEqual(await ran([]), [onPostgres]);
    assert.deepEqual(await ran([missing('postgres')]), [plain]);
  });

  it('knows every need that a file name states', async () => {
    const stated = (await selectTests(repositoryRoot, [])).files.flatMap(needsOf);
    assert.deepEqual(
      stated.filter((word) => !needWords.some((known) => known === word)),
      [],
    );
  });

  it('runs the tests without a need as the fast ones', async () => {
    const { files } = await selectFastTests(repositoryRoot);
    assert.ok(files.length > 100 && files.every((file) => needsOf(file).length === 0));
  });

  it('knows the Docker tests to be impossible, and why, without an engine', async () => {
    const state = await probeDocker(new Docker({ socketPath: '/nowhere.sock' }));
    assert.ok(!state.usable && /no Docker engine answers.*nowhere\.sock/.test(state.reason));
  });

  async function runTests(body: string, env: Record<string, string>, needs = '') {
    const file = join(directory, `case-${Date.now()}${needs}.test.ts`);
    await writeFile(
      file,
      `import { spawn } from 'node:child_process';\nimport { test } from 'node:test';\nvoid spawn;\n${body}\n`,
    );
    return await runTemperTest([file], env);
  }

  async function runTemperTest(words: readonly string[], env: Record<string, string>) {
    const { NODE_TEST_CONTEXT: _, CI: __, ...outer } = process.env; // otherwise node takes it for a part of this test
    const child = spawn(process.execPath, [join(repositoryRoot, 'infra/setup/run.mjs'), 'test', ...words], {
      env: { ...outer, ...env },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    return {
      code,
      lines: output
        .trimEnd()
        .split('\n')
        .filter((line) => !line.startsWith('left behind: container')),
    };
  }
});
