import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';

const program = [join(import.meta.dirname, '../../../workers/cli.ts'), 'demo'];
/** The demo in CI is short. By hand, TEMPER_TEST_DEMO=whole replaces it by the whole one. */
const isWhole = process.env.TEMPER_TEST_DEMO === 'whole';
const short = isWhole ? program : [join(import.meta.dirname, 'short-demo.ts')];

/** Runs the demo as a user does, but with a single training step, and the first time with less work before and after it. */
describe('temper demo', () => {
  let home: string;
  const started: ChildProcess[] = [];
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-demo-'));
  });
  after(async () => {
    for (const one of started) one.kill('SIGKILL');
    await rm(home, { recursive: true, force: true });
  });

  function demo(name: string, command: readonly string[], ...args: readonly string[]) {
    const env = { ...process.env, TEMPER_HOME: join(home, name) };
    const child = spawn(process.execPath, [...command, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    started.push(child);
    const ended = Promise.all([text(child.stdout), once(child, 'exit')]).then(([stdout, [code]]) => ({ stdout, code }));
    return { child, ended };
  }

  /** Lists the sandboxes of a stack; entries that begin with a dot are shared by them. */
  async function sandboxes(name: string): Promise<readonly string[]> {
    const root = join(home, name, 'sandboxes');
    const stacks = (await readdir(root)).filter((entry) => !entry.startsWith('.'));
    return (await Promise.all(stacks.map((stack) => readdir(join(root, stack))))).flat();
  }

  const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((all, one) => all + one, 0);

  it('warms up, evaluates, trains, evaluates again, and reports', async () => {
    const out = join(home, 'out');
    const { child, ended } = demo('to-its-end', short, '--seed', '3', '--steps', '1', '--out', out);
    const [log, { stdout, code }] = await Promise.all([text(child.stderr), ended]);
    assert.equal(code, 0, log);
    assert.match(stdout, /^mean reward +0\.\d\d → 0\.\d\d {2}\(first and last fifth of 1 steps\)$/m);
    assert.match(log, /^held-out reward after the warm-up: [01]\.\d{3} \(scored (?:12|40)\)$/m);
    const summary = JSON.parse(await readFile(join(out, 'summary.json'), 'utf8'));
    const { seed, steps, heldOutBefore, heldOutAfter, groups, rollouts, outcomes, fates } = summary;
    assert.deepEqual([seed, steps, sum(outcomes), sum(fates)], [3, 1, rollouts, groups], JSON.stringify(summary));
    assert.deepEqual(
      [fates.trained, outcomes.infra, outcomes['invalid-task']],
      [isWhole ? 6 : 3, 0, 0],
      JSON.stringify(summary),
    );
    // Edits are valid but mostly wrong, and one small step changes little. The short warm-up shows more right ones, and now and then
    // all of the few tasks of its evaluation are solved.
    const most = isWhole ? 0.6 : 1;
    assert.ok(heldOutBefore > 0 && heldOutBefore <= most, `expected some to be wrong, got ${heldOutBefore}`);
    assert.ok(heldOutAfter > 0, `expected some to be right, got ${heldOutAfter}`);
    const report = await readFile(join(out, 'report.html'), 'utf8');
    assert.match(report, /held-out reward, before → after/);
    assert.deepEqual(await sandboxes('to-its-end'), []);
  });

  it('ends on Ctrl-C and leaves no sandbox and no stack', async () => {
    const { child, ended } = demo('interrupted', program, '--seed', '3', '--out', join(home, 'none'));
    let log = '';
    for await (const chunk of child.stderr.setEncoding('utf8')) {
      const before = log;
      log += chunk;
      if (!before.includes('warm-up') && log.includes('warm-up')) child.kill('SIGINT');
    }
    const { code } = await ended;
    assert.equal(code, 130, log);
    assert.match(log, /cancelling the run/);
    assert.deepEqual(await sandboxes('interrupted'), []);
    await assert.rejects(readFile(join(home, 'none/summary.json')), { code: 'ENOENT' });
  });
});
