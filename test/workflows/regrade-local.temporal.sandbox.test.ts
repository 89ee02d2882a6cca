import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { graderVersion } from '../../infra/grading/version.ts';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { SandboxProvider, SandboxSpec } from '../../infra/sandbox/sandbox.ts';
import { createQuarantine } from '../../infra/tasks/quarantine.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeReport, RegradeRequest, RegradeResult } from '../../workflows/contracts/regrade.ts';
import type { SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { createRecords } from '../helpers/store/file-store.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { until } from '../helpers/until.ts';

const where = '/grader-of-the-test';
/** Rewards a correct answer with what the grader beside it says. A test that changes that grader simulates a fix. */
const graded = `mkdir -p /logs/verifier
. ${where}/grader.sh
[ "$(cat /workspace/answer.txt)" = right ] && echo "$RIGHT" > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
`;

describe('a regrade in local sandboxes', () => {
  let rollouts: Rollouts;
  let grader: string;
  /** The reward of a correct answer in each evaluation; the last one is repeated. */
  let worth: string[];

  before(async () => {
    grader = await mkdtemp(join(tmpdir(), 'temper-grader-'));
    await chmod(grader, 0o755);
    rollouts = await startRollouts((home) => ({
      taskRoots: [join(home, 'tasks')],
      provider: gradedBy(
        createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack', spawner: createHelperSpawner() }),
      ),
    }));
    const root = join(rollouts.home, 'tasks');
    await mkdir(root);
    worth = ['0'];
    const ended = [
      { name: 'first', id: 'solved-first', agent: 'oracle' },
      { name: 'second', id: 'solved-second', agent: 'oracle' },
      { name: 'third', id: 'nothing', agent: 'nop' },
    ];
    for (const { name, id, agent } of ended) {
      const task = await writeHarborTask(root, name, { test: graded });
      const result = await rollouts.run(id, { task, agent, sandbox: 'local' });
      assert.equal(result.outcome, 'scored', JSON.stringify(result));
    }
  });
  after(async () => {
    await rollouts?.close();
    await rm(grader, { recursive: true, force: true });
  });

  /** Mounts the test's own grader, as it is now, into each sandbox of an evaluation. */
  function gradedBy(provider: SandboxProvider): SandboxProvider {
    const ensure = async (spec: SandboxSpec, signal: AbortSignal) => {
      if (spec.labels.purpose !== 'evaluation') return provider.ensure(spec, signal);
      const next = worth.length > 1 ? worth.shift() : worth[0];
      // The file is renamed into place, because other evaluations may be reading it.
      const written = join(grader, randomUUID());
      await writeFile(written, next === 'hang' ? 'sleep 600' : `RIGHT=${next}\n`);
      await rename(written, join(grader, 'grader.sh'));
      return provider.ensure(
        { ...spec, mounts: [...spec.mounts, { source: grader, target: where, readOnly: true }] },
        signal,
      );
    };
    return { ...provider, ensure };
  }

  const start = (workflowId: string, request: RegradeRequest) =>
    rollouts.client.workflow.start<(request: RegradeRequest) => Promise<RegradeResult>>('regrade', {
      taskQueue: controlQueue,
      workflowId,
      args: [request],
    });
  const reportOf = async ({ report }: RegradeResult): Promise<RegradeReport> =>
    (await rollouts.store.getJson(report.digest)) as RegradeReport;
  const all = ['solved-first', 'solved-second', 'nothing'];

  it('gives rollouts the reward of the fixed grader, and runs no agent', async () => {
    worth = ['1'];
    const result = await (await start('fixed', { rollouts: all, grader: graderVersion })).result();
    assert.deepEqual(result.states, { same: 1, changed: 2, unstable: 0, failed: 0, 'left-out': 0 });
    const { rows } = await reportOf(result);
    const told = rows.map(({ rollout, task, before: old, after: next }) => [rollout, task, old, next]);
    assert.deepEqual(told.sort(), [
      ['nothing', 'third', 0, 0],
      ['solved-first', 'first', 0, 1],
      ['solved-second', 'second', 0, 1],
    ]);
    assert.ok(rows.every(({ graderBefore }) => graderBefore === graderVersion));
    assert.equal((await rollouts.client.workflow.count('WorkflowType="rollout"')).count, 3);
    assert.deepEqual(await rollouts.sandboxes(), []);
  });

  it('names the logs of evaluations that disagree on a diff', async () => {
    worth = ['1', '0', '1'];
    const result = await (await start('flaky', { rollouts: ['solved-first'], repeat: 3 })).result();
    assert.equal(result.states.unstable, 1);
    const { rows } = await reportOf(result);
    assert.deepEqual(
      rows[0]?.evaluations.map(({ reward, kind }) => [reward, kind]),
      [
        [1, 'graded'],
        [0, 'graded'],
        [1, 'graded'],
      ],
    );
    for (const { log } of rows[0]?.evaluations ?? []) assert.ok(await rollouts.store.has(log));
    const inside = await createQuarantine(createRecords(rollouts.home)).byAddress();
    const known = inside.get(`harbor:${join(rollouts.home, 'tasks', 'first')}`);
    assert.deepEqual([known?.task, known?.evidence.map(({ reward }) => reward)], ['first', [1, 0, 1]]);
    // The tasks are identical, so all of them are packed into the same blob.
    assert.equal(await createQuarantine(createRecords(rollouts.home)).release('first'), 1);
  });

  it('reuses the verdicts of an earlier regrade if it may, and marks them as cached', async () => {
    const request = { rollouts: all, reuseVerdicts: true };
    worth = ['1'];
    const first = await reportOf(await (await start('kept', request)).result());
    // The three tasks are identical, and so are two of the diffs, so one verdict may serve both.
    assert.equal(first.rows.find(({ rollout }) => rollout === 'nothing')?.evaluations[0]?.cached, undefined);
    worth = ['0'];
    const again = await reportOf(await (await start('reused', request)).result());
    assert.deepEqual(
      again.rows.map(({ evaluations }) => evaluations[0]?.cached),
      [true, true, true],
    );
    assert.equal(again.result.states.changed, 2, 'the cached verdicts are those of the earlier grader');
    const fresh = await (await start('fresh', { rollouts: all })).result();
    assert.equal(fresh.states.same, 3);
  });

  it('shares its verdicts with a sweep that may reuse them', async () => {
    worth = ['0'];
    const request: SweepRequest = {
      tasks: `harbor:${join(rollouts.home, 'tasks')}`,
      count: 1,
      reuseVerdicts: true,
      settings: { agent: 'oracle', sandbox: 'local' },
    };
    const args = [request];
    const sweep = { taskQueue: controlQueue, workflowId: 'sweep', args };
    const { meanReward }: SweepResult = await rollouts.client.workflow.execute('evaluationSweep', sweep);
    assert.equal(meanReward, 1, 'the grader of today would say 0');
  });

  it('removes the sandboxes of its evaluations when it is cancelled', async () => {
    worth = ['hang'];
    const handle = await start('cancelled', { rollouts: all, concurrency: 2 });
    await until(async () => (await rollouts.sandboxes()).length === 2);
    await handle.cancel();
    await assert.rejects(handle.result(), /cancelled/i);
    assert.deepEqual(await rollouts.sandboxes(), []);
  });
});
