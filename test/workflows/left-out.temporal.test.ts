import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { Batch } from '../../workflows/contracts/batch.ts';
import type { GroupReport } from '../../workflows/contracts/group.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus, StepResult } from '../../workflows/contracts/run.ts';
import { createFileStore } from '../helpers/store/file-store.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';

/** Rollouts and groups that a step leaves out. Rewards, and the reasons why agents end, are scripted. */
describe('a training run', () => {
  let stack: ScriptedStack;
  let evaluated: string[] = [];
  const differing = (workflowId: string): number => (workflowId.endsWith('rollout-0') ? 0 : 1);
  const request: RunRequest = { tasks: 'generated:train/1', steps: 1, groupsPerStep: 2, rolloutsPerGroup: 3 };

  const run = (workflowId: string, own: Partial<RunRequest>): Promise<RunStatus> =>
    stack.server.client.workflow.execute('trainingRun', {
      taskQueue: controlQueue,
      workflowId,
      args: [{ ...request, ...own }],
    });
  const recorded = async (runKey: string, name: string): Promise<unknown> => stack.workers.records.read(runKey, name);
  const stepOf = async (runKey: string, step: number): Promise<StepResult> =>
    ((await recorded(runKey, `step-${step}`)) as { readonly result: StepResult }).result;

  before(async () => {
    stack = await startScriptedStack();
  });
  beforeEach(() => {
    evaluated = [];
  });
  after(async () => {
    await stack?.close();
  });

  it('neither evaluates nor trains a rollout whose end its settings exclude', async () => {
    stack.script = {
      reward: differing,
      stop: (id) => (id.endsWith('rollout-2') ? 'deadline' : 'submitted'),
      evaluate: async (id) => {
        evaluated.push(id);
      },
    };
    const { runKey, rollouts } = await run('excluded', { groupsPerStep: 1, settings: { unscored: ['deadline'] } });
    assert.deepEqual([rollouts.scored, rollouts.cancelled], [2, 1]);
    assert.equal(evaluated.length, 2);
    const report = (await recorded(runKey, 'group-0')) as GroupReport;
    const [excluded] = report.rollouts.filter(({ outcome }) => outcome === 'cancelled');
    assert.deepEqual([excluded?.failure?.type, excluded?.stop, excluded?.reward], ['Excluded', 'deadline', null]);
    assert.ok(stack.workers.released.includes(excluded?.rollout ?? ''));
    const { batch } = await stepOf(runKey, 1);
    const trained = (await createFileStore(`${stack.home}/store`).getJson(batch?.digest ?? '')) as Batch;
    assert.deepEqual(
      trained.rollouts.map(({ reward }) => reward),
      [0, 1],
    );
  });

  it('drops a group whose rewards are all equal from its step, or keeps it if asked to', async () => {
    stack.script = { reward: (id) => (id.includes('/group-1/') ? 1 : differing(id)) };
    const dropping = await run('dropping', { training: { zeroVariance: 'drop' } });
    assert.deepEqual([dropping.groups.trained, dropping.groups['zero-variance']], [1, 1]);
    const dropped = await stepOf(dropping.runKey, 1);
    assert.deepEqual([dropped.groups.trained, dropped.groups['zero-variance'], dropped.rollouts], [1, 1, 3]);
    // The rewards of a dropped group are rewards of the policy all the same.
    assert.equal(dropped.meanReward, 5 / 6);
    const keeping = await run('keeping', { training: { zeroVariance: 'keep' } });
    const kept = await stepOf(keeping.runKey, 1);
    assert.deepEqual([kept.groups.trained, kept.groups['zero-variance'], kept.rollouts], [2, 0, 6]);
  });

  it('makes no update in a step without a batch, publishes its version, and continues', async () => {
    // Nothing can be learnt from the groups of the first step.
    stack.script = { reward: (id) => (/\/group-[01]\//.test(id) ? 1 : differing(id)) };
    const before = stack.workers.updates.length;
    const settings: Partial<RunRequest> = { steps: 2, maxStaleness: 0, training: { zeroVariance: 'drop' } };
    const { runKey, phase, step, groups } = await run('empty', settings);
    assert.deepEqual([phase, step, groups.trained, groups['zero-variance']], ['done', 2, 2, 2]);
    const first = await stepOf(runKey, 1);
    assert.deepEqual([first.batch, first.rollouts, first.tokens, first.metrics], [null, 0, 0, {}]);
    assert.deepEqual([first.meanReward, first.staleness], [1, 0]);
    assert.deepEqual(
      stack.workers.updates.slice(before).map((update) => update.step),
      [2],
    );
    assert.deepEqual(stack.workers.published, [0, 1, 2]);
  });
});
