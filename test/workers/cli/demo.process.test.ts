import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';

const program = join(import.meta.dirname, '../../../workers/cli.ts');
/** The warm-up alone takes half a minute on two cores of its own. */
const patienceMs = 600_000;

/** The main job as somebody types it, with one step in place of all: everything else of it is the same. */
describe('temper demo', { timeout: patienceMs }, () => {
  let home: string;
  const started: ChildProcess[] = [];
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-demo-'));
  });
  after(async () => {
    for (const one of started) one.kill('SIGKILL');
    await rm(home, { recursive: true, force: true });
  });

  function demo(name: string, ...args: readonly string[]) {
    const env = { ...process.env, TEMPER_HOME: join(home, name) };
    const child = spawn(process.execPath, [program, 'demo', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    started.push(child);
    const ended = Promise.all([text(child.stdout), once(child, 'exit')]).then(([stdout, [code]]) => ({ stdout, code }));
    return { child, ended };
  }

  /** Below the directory of the stack; beside it is what its sandboxes share. */
  async function sandboxes(name: string): Promise<readonly string[]> {
    const root = join(home, name, 'sandboxes');
    const stacks = (await readdir(root)).filter((entry) => !entry.startsWith('.'));
    return (await Promise.all(stacks.map((stack) => readdir(join(root, stack))))).flat();
  }

  const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((all, one) => all + one, 0);

  it('warms up, evaluates, trains, evaluates again, and reports', async () => {
    const out = join(home, 'out');
    const { child, ended } = demo('whole', '--seed', '3', '--steps', '1', '--out', out);
    const [said, { stdout, code }] = await Promise.all([text(child.stderr), ended]);
    assert.equal(code, 0, said);
    assert.match(stdout, /^mean reward +0\.\d\d → 0\.\d\d {2}\(first and last fifth of 1 steps\)$/m);
    assert.match(said, /^accuracy after the warm-up: 0\.\d{3} \(scored 40\)$/m);
    const summary = JSON.parse(await readFile(join(out, 'summary.json'), 'utf8'));
    const { seed, steps, heldOutBefore, heldOutAfter, groups, rollouts, outcomes, fates } = summary;
    assert.deepEqual([seed, steps, sum(outcomes), sum(fates)], [3, 1, rollouts, groups], JSON.stringify(summary));
    assert.deepEqual([fates.trained, outcomes.infra, outcomes['invalid-task']], [6, 0, 0], JSON.stringify(summary));
    // Edits that are valid, most of them wrong; one small step changes little.
    assert.ok(heldOutBefore > 0 && heldOutBefore < 0.6, `expected most to be wrong, got ${heldOutBefore}`);
    assert.ok(heldOutAfter > 0, `expected some to be right, got ${heldOutAfter}`);
    const report = await readFile(join(out, 'report.html'), 'utf8');
    assert.match(report, /held-out reward, before → after/);
    assert.deepEqual(await sandboxes('whole'), []);
  });

  it('is ended by Ctrl-C, and leaves no sandbox and no stack', async () => {
    const { child, ended } = demo('broken-off', '--seed', '3', '--out', join(home, 'none'));
    let said = '';
    for await (const chunk of child.stderr.setEncoding('utf8')) {
      const before = said;
      said += chunk;
      if (!before.includes('warm-up') && said.includes('warm-up')) child.kill('SIGINT');
    }
    const { code } = await ended;
    assert.equal(code, 130, said);
    assert.match(said, /cancelling the run/);
    assert.deepEqual(await sandboxes('broken-off'), []);
    await assert.rejects(readFile(join(home, 'none/summary.json')), { code: 'ENOENT' });
  });
});
