import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { WorkflowNotFoundError } from '@temporalio/client';
import type { RetentionContext } from '../../infra/retention/category.ts';
import { recordOutcomes } from '../../infra/retention/references/outcomes.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { groupId, rolloutId, stepId, sweepRolloutId } from '../../workflows/contracts/ids.ts';
import { pauseSignal, resumeSignal, sweepStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeResult } from '../../workflows/contracts/regrade.ts';
import type { RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepReport, SweepResult } from '../../workflows/contracts/sweep.ts';
import { cliOn } from '../helpers/cli.ts';
import { createFileRollouts, createFileStore } from '../helpers/store/file-store.ts';
import { resetToFirstTask } from '../helpers/temporal/manual-worker.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { until as untilWithin } from '../helpers/until.ts';

/** Many workflows take long on a busy machine. */
const until = <Seen>(look: () => Seen | Promise<Seen>) => untilWithin(look, 240_000);
const ended = 40;
const last = `/rollout-${ended}-`;

describe('rollouts that the Temporal server has forgotten', () => {
  let stack: ScriptedStack;
  before(async () => {
    stack = await startScriptedStack({ suggestContinueAsNewAt: 30 });
  });
  after(() => stack?.close());

  const start = (type: string, workflowId: string, input: object) =>
    stack.server.client.workflow.start(type, { taskQueue: controlQueue, workflowId, args: [input] });
  const isForgotten = (workflowId: string): Promise<boolean> =>
    stack.server.client.workflow
      .getHandle(workflowId)
      .describe()
      .then(
        () => false,
        (error) => {
          if (error instanceof WorkflowNotFoundError) return true;
          throw error;
        },
      );

  /** Deletes a workflow that ends, once the server has closed it everywhere: it would repeat an earlier deletion after 30 s. */
  async function forget(workflowId: string): Promise<void> {
    const { client, namespace } = stack.server;
    const closed = `WorkflowId = '${workflowId}' AND ExecutionStatus != 'Running'`;
    await until(async () => (await client.workflow.count(closed)).count === 1);
    await client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution: { workflowId } });
    await until(() => isForgotten(workflowId));
  }

  it('count in their sweep as they ended, also after it was set back, and in its report and its regrade', async () => {
    const held = Promise.withResolvers<void>();
    const kept = Promise.withResolvers<void>();
    const forgotten = Promise.withResolvers<void>();
    let atWork = 0;
    stack.script = {
      ask: () => forgotten.promise,
      reward: (id) => (id.includes('/rollout-7-') ? 0 : 1),
      agent: (id) => {
        atWork += 1;
        return id.includes(last) ? kept.promise : held.promise;
      },
    };
    const sweep = await start('evaluationSweep', 'forgotten', {
      tasks: 'set',
      count: ended + 1,
      concurrency: ended + 1,
    });
    await until(() => atWork === ended + 1);
    const handle = stack.server.client.workflow.getHandle('forgotten');
    const { sweepKey } = await handle.query(sweepStatusQuery);
    // It continues as new when it is woken. The rollouts do not report to its new execution, which asks for their ends.
    await handle.signal(pauseSignal);
    await handle.signal(resumeSignal);
    await until(async () => (await handle.describe()).runId !== sweep.firstExecutionRunId);
    const ids = Array.from({ length: ended }, (_, task) =>
      sweepRolloutId('forgotten', sweepKey, { task, attempt: 0, retry: 0 }),
    );
    held.resolve();
    // One after the other: the server lets deletions in parallel fail, and repeats a few of them every 30 s.
    for (const id of ids) await forget(id);
    forgotten.resolve();
    await until(async () => (await handle.query(sweepStatusQuery)).ended === ended);
    const before = await handle.query(sweepStatusQuery);
    assert.deepEqual([before.outcomes.scored, before.outcomes.cancelled, before.passed], [ended, 0, ended - 1]);
    // None of them is worked on again.
    const again: string[] = [];
    stack.script = {
      reward: () => 0,
      provision: async (id) => void again.push(id),
      agent: (id) => (id.includes(last) ? kept.promise : Promise.resolve()),
    };
    await resetToFirstTask(stack.server, 'forgotten', sweep.firstExecutionRunId);
    await until(async () => (await handle.query(sweepStatusQuery)).ended === ended);
    assert.deepEqual(again, []);
    kept.resolve();
    const result: SweepResult = await handle.result();
    assert.deepEqual(
      [result.counted, result.outcomes.scored, result.meanReward],
      [ended + 1, ended + 1, (ended - 1) / (ended + 1)],
    );
    const report = (await createFileStore(`${stack.home}/store`).getJson(result.report.digest)) as SweepReport;
    assert.deepEqual(
      report.taskScores.filter(({ passed }) => passed === 0).map(({ task }) => task),
      ['set#7', `set#${ended}`],
    );
    stack.script = { reward: (id) => (id.includes('regrade') ? 1 : 0) };
    const regrade = await start('regrade', 'regrade', { run: 'forgotten' });
    const { rollouts, states }: RegradeResult = await regrade.result();
    assert.deepEqual([rollouts, states.same, states.changed], [ended + 1, ended - 1, 2]);
  });

  it('are not worked on again by a run that was set back, with and without the report of their group', async () => {
    const provisioned: string[] = [];
    stack.script = { reward: (id) => Number(id.endsWith('-0')), provision: async (id) => void provisioned.push(id) };
    const size = { groupsPerStep: 2, rolloutsPerGroup: 2, maxStaleness: 0 };
    const run = await start('trainingRun', 'set-back', { tasks: 'generated:train/1', steps: 1, ...size });
    const before: RunStatus = await run.result();
    const groups = [0, 1].map((index) => groupId('set-back', run.firstExecutionRunId, index));
    const ids = groups.flatMap((group) => [rolloutId(group, 0), rolloutId(group, 1)]);
    assert.deepEqual(provisioned.toSorted(), ids);
    for (const id of [...ids, ...groups, stepId('set-back', run.firstExecutionRunId, 1)]) await forget(id);
    // The group had ended, and its report was not written yet.
    await rm(join(stack.home, 'runs', run.firstExecutionRunId, 'group-1.json'));
    await resetToFirstTask(stack.server, 'set-back', run.firstExecutionRunId);
    const after: RunStatus = await stack.server.client.workflow.getHandle('set-back').result();
    assert.deepEqual(provisioned.toSorted(), ids);
    assert.deepEqual([after.groups, after.rollouts, after.step], [before.groups, before.rollouts, 1]);
    assert.equal(await isForgotten(groups[0] ?? ''), true, 'a group with a report is not started');
  });

  it('are cancelled or terminated ones as well: each has a record', async () => {
    const { client } = stack.server;
    const held = Promise.withResolvers<void>();
    const atWork = new Set<string>();
    stack.script = {
      reward: () => 1,
      agent: (id) => {
        atWork.add(id);
        return held.promise;
      },
    };
    const input = { task: 'scripted:0' };
    const byHand = await Promise.all(['cancelled', 'terminated'].map((id) => start('rollout', id, input)));
    const sweep = await start('evaluationSweep', 'torn', { tasks: 'set', count: 1 });
    const unplaced = await client.workflow.signalWithStart('rollout', {
      taskQueue: controlQueue,
      workflowId: 'unplaced',
      args: [input],
      signal: pauseSignal,
    });
    const attempt = sweepRolloutId('torn', sweep.firstExecutionRunId, { task: 0, attempt: 0, retry: 0 });
    await until(() => atWork.size === 3);
    await Promise.all([byHand[0]?.cancel(), unplaced.cancel(), byHand[1]?.terminate()]);
    await client.workflow.getHandle(attempt).terminate();
    await Promise.allSettled([unplaced, ...byHand].map((handle) => handle.result()));
    const { outcomes }: SweepResult = await sweep.result();
    held.resolve();
    assert.equal(outcomes.cancelled, 1);
    const recordOf = (workflowId: string) => createFileRollouts(stack.home).find({ workflowId });
    const endOf = async (workflowId: string) => {
      const record = await recordOf(workflowId);
      return record && [record.writer, record.result.outcome, record.result.cost?.sampledTokens];
    };
    assert.deepEqual(await endOf('cancelled'), ['rollout', 'cancelled', 20]);
    assert.deepEqual(await endOf('unplaced'), ['rollout', 'cancelled', 0]);
    assert.deepEqual(await endOf(attempt), ['reader', 'cancelled', undefined]);
    assert.equal(await endOf('terminated'), null);
    const { signal } = new AbortController();
    const knowledge = { client: async () => client };
    const context = { objects: createDirectory(stack.home), knowledge, signal } as unknown as RetentionContext;
    // The server's list, by which retention learns of its end, lags behind.
    await until(async () => (await recordOutcomes(context)) && (await recordOf('terminated')));
    assert.deepEqual(await endOf('terminated'), ['reader', 'cancelled', undefined]);
  });

  it('are shown by their records, and so is their group', async () => {
    stack.script = { reward: (id) => Number(id.endsWith('-0')) };
    const run = await start('trainingRun', 'shown', {
      tasks: 'generated:train/1',
      steps: 1,
      groupsPerStep: 1,
      rolloutsPerGroup: 2,
    });
    await run.result();
    const group = groupId('shown', run.firstExecutionRunId, 0);
    const workflowId = rolloutId(group, 0);
    const temper = cliOn(stack.home, stack.server);
    const known = await temper.run('show', workflowId, '--json');
    await forget(workflowId);
    const forgotten = await temper.run('show', workflowId, '--json');
    assert.deepEqual([forgotten.code, forgotten.stdout], [0, known.stdout], forgotten.stderr);
    assert.equal(JSON.parse(forgotten.stdout).result.outcome, 'scored');
    const { report } = JSON.parse((await temper.run('show', group, '--json')).stdout);
    assert.deepEqual([report.rollouts.length, report.rollouts[0].workflowId], [2, workflowId]);
  });
});
