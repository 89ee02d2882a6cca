import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeReport, RegradeRequest, RegradeResult, RegradeRow } from '../../workflows/contracts/regrade.ts';
import { cliOn } from '../helpers/cli.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { answerTest, writeHarborTask } from '../helpers/tasks/harbor-task.ts';

const alwaysZero = 'mkdir -p /logs/verifier\necho 0 > /logs/verifier/reward.txt\n';
const noReward = 'mkdir -p /logs/verifier\necho passed > /logs/verifier/reward.txt\n';

describe('a regrade by repaired tests', () => {
  let rollouts: Rollouts;
  let root: string;
  let repaired: string;

  before(async () => {
    rollouts = await startRollouts((home) => ({ taskRoots: [join(home, 'tasks'), join(home, 'repaired')] }));
    root = join(rollouts.home, 'tasks');
    repaired = join(rollouts.home, 'repaired');
    await mkdir(root);
    const ended = [
      { task: 'strict', id: 'solved', agent: 'oracle', test: alwaysZero, outcome: 'scored' },
      { task: 'strict', id: 'nothing', agent: 'nop', test: alwaysZero, outcome: 'scored' },
      { task: 'odd', id: 'unjudged', agent: 'oracle', test: noReward, outcome: 'invalid-task' },
      { task: 'moved', id: 'elsewhere', agent: 'oracle', test: alwaysZero, outcome: 'scored' },
      { task: 'other', id: 'of-other', agent: 'oracle', test: answerTest, outcome: 'scored' },
    ] as const;
    for (const { task: name, id, agent, test, outcome } of ended) {
      const task = await writeHarborTask(root, name, { test });
      const result = await rollouts.run(id, { task, agent, sandbox: 'local' });
      assert.equal(result.outcome, outcome, JSON.stringify(result));
    }
    for (const name of ['strict', 'odd']) await writeHarborTask(repaired, name, { test: answerTest });
    await writeHarborTask(repaired, 'moved', { test: answerTest, workspace: { 'answer.txt': 'another\n' } });
  });
  after(async () => {
    await rollouts?.close();
  });

  const all = ['solved', 'nothing', 'unjudged', 'elsewhere', 'of-other'];
  const regrade = async (workflowId: string, request: RegradeRequest) => {
    const result: RegradeResult = await rollouts.client.workflow.execute('regrade', {
      taskQueue: controlQueue,
      workflowId,
      args: [request],
    });
    const { rows } = (await rollouts.store.getJson(result.report.digest)) as RegradeReport;
    return { result, rowOf: (id: string): RegradeRow | undefined => rows.find(({ rollout }) => rollout === id) };
  };

  it('judges each diff by the current task, and names the files before and after', async () => {
    const { result, rowOf } = await regrade('by-repaired', { rollouts: all, tasks: `harbor:${repaired}` });
    assert.deepEqual(result.states, { same: 1, changed: 2, unstable: 0, failed: 1, 'left-out': 1 });
    const rewards = ['solved', 'nothing', 'unjudged'].map((id) => [rowOf(id)?.before, rowOf(id)?.after]);
    assert.deepEqual(rewards, [
      [0, 1],
      [0, 0],
      [null, 1],
    ]);
    const solved = rowOf('solved')?.bundles;
    assert.match(solved?.before ?? '', /^[0-9a-f]{64}$/);
    assert.match(solved?.after ?? '', /^[0-9a-f]{64}$/);
    assert.notEqual(solved?.before, solved?.after);
    assert.deepEqual(rowOf('nothing')?.bundles, solved, 'both had the same task');
  });

  it('fails a diff whose task has other files now, and leaves out a rollout whose task is not in the set', async () => {
    const { rowOf } = await regrade('not-fitting', { rollouts: all.slice(3), tasks: `harbor:${repaired}` });
    const moved = rowOf('elsewhere');
    assert.deepEqual([moved?.state, moved?.after, moved?.failure?.type], ['failed', null, 'SetupFailed']);
    assert.equal(rowOf('of-other')?.why, 'the task set has no task with the id other');
  });

  it('uses the tasks that the rollouts had if no task set is given', async () => {
    await writeHarborTask(root, 'strict', { test: answerTest });
    const { result, rowOf } = await regrade('as-they-were', { rollouts: ['solved'] });
    assert.deepEqual([result.states.same, rowOf('solved')?.bundles], [1, undefined]);
  });

  it('is refused before anything is graded if the task set can not be read', async () => {
    const refused = regrade('unreadable', { rollouts: all, tasks: `harbor:${join(root, 'none')}` });
    await assert.rejects(refused, (error: Error) => {
      assert.match(String((error.cause as Error).cause), /none: no such file or directory; next to it are moved, odd/);
      return true;
    });
  });

  it('accepts any directory on the command line', async () => {
    const elsewhere = join(rollouts.home, 'elsewhere');
    await writeHarborTask(elsewhere, 'strict', { test: answerTest });
    const temper = cliOn(rollouts.home, rollouts.server);
    const { code, stdout, stderr } = await temper.run('regrade', 'solved', 'nothing', '--tasks', elsewhere);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^packed 1 tasks? of .*elsewhere$/m);
    assert.match(stdout, /^repaired {5}2 of 2 rollouts were graded by a changed version of their task \(1 task\)$/m);
    assert.match(stdout, /^solved +strict +0\.00 +1\.00 +graded → graded$/m);
    const none = await temper.run('regrade', 'solved', '--tasks', join(rollouts.home, 'nothing-there'));
    assert.deepEqual([none.code, /expected a directory, an address/.test(none.stderr)], [2, true], none.stderr);
  });
});
