import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { checkPool } from '../../activities/control/check-run.ts';
import { cancelOrphans } from '../../activities/control/reap.ts';
import { createReaper } from '../../activities/host/reap.ts';
import { createSlots } from '../../activities/host/slots.ts';
import type { SandboxInfo } from '../../infra/sandbox/sandbox.ts';
import { openRuns } from '../../infra/temporal/runs.ts';
import { startRun } from '../../workers/cli/follow/start-workflow.ts';
import { groupId, rolloutId, sweepRolloutId } from '../../workflows/contracts/ids.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import { createPools } from '../helpers/engine/pools.ts';
import { answerTask, resetToFirstTask } from '../helpers/temporal/manual-worker.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';
import { until } from '../helpers/until.ts';

const wholeWeights = createPools('reload');
const network = { places: { clear: async () => undefined } };

/* No worker polls here, so a workflow runs until the test ends it. */
describe('the key that a run keeps through continue-as-new and resets', () => {
  let server: TestServer;
  const handle = (workflowId: string) => server.client.workflow.getHandle(workflowId);
  const end = (workflowId: string) => handle(workflowId).terminate('by the test');
  const start = async (type: string, workflowId: string, run?: string): Promise<string> => {
    const typedSearchAttributes = run === undefined ? [] : [{ key: searchAttributes.run, value: run }];
    const started = await server.client.workflow.start(type, {
      taskQueue: workflowId,
      workflowId,
      typedSearchAttributes,
    });
    return started.firstExecutionRunId;
  };
  /** Waits for the list of workflows, which lags a little behind. */
  const untilListed = (query: string, expected: number) =>
    until(async () => (await server.client.workflow.count(query)).count === expected);
  /** Creates a reaper of these providers that looks once a minute. */
  const reaperOf = (providers: Parameters<typeof createReaper>[0]['providers']) => {
    let nowMs = 0;
    const host = {
      stack: 'keyed',
      fence: () => null,
      sharesJournals: false,
      slots: createSlots(1),
      network,
      results: { list: async () => [], remove: async () => undefined },
      providers,
    };
    const reaper = createReaper(host, server.client, () => nowMs);
    const look = () => {
      nowMs += 60_000;
      return reaper.reap(AbortSignal.timeout(120_000));
    };
    return { look };
  };
  const listed = 'ExecutionStatus="Running" AND TemperRun IS NOT NULL';

  before(async () => {
    server = await startTestServer();
  });
  after(() => server?.close());

  it('cancels what a closed run and a closed sweep left, but nothing of a running one with the same name', async () => {
    const left: string[] = [];
    const kept: string[] = [];
    for (const mine of [left, kept]) {
      const runKey = await start('trainingRun', 'my-run');
      const sweepKey = await start('evaluationSweep', 'my-sweep');
      const group = groupId('my-run', runKey, 0);
      const attempt = sweepRolloutId('my-sweep', sweepKey, { task: 0, attempt: 0, retry: 0 });
      await start('group', group, 'my-run');
      await start('rollout', rolloutId(group, 0), 'my-run');
      await start('rollout', attempt, 'my-sweep');
      mine.push(group, rolloutId(group, 0), attempt);
      if (mine === kept) continue;
      await end('my-run');
      await end('my-sweep');
    }
    // A run that continues as another execution is still the same run.
    await answerTask(server, 'my-run', 'continue as new');
    await untilListed(listed, 6);
    const { groups, rollouts } = await cancelOrphans(server.client);
    assert.deepEqual([...groups, ...rollouts].sort(), left.toSorted());
    for (const workflowId of [...left, ...kept]) {
      const { events } = await handle(workflowId).fetchHistory();
      const cancelled = events?.some((event) => event.workflowExecutionCancelRequestedEventAttributes) === true;
      assert.equal(cancelled, left.includes(workflowId), workflowId);
    }
    for (const workflowId of [...left, ...kept, 'my-run', 'my-sweep']) await end(workflowId);
  });

  it('refuses the younger of two runs on a pool of whole weights, even if the older one has continued as new', async () => {
    await start('trainingRun', 'older');
    await answerTask(server, 'older', 'nothing');
    await start('trainingRun', 'younger');
    await handle('older').signal('wake');
    await answerTask(server, 'older', 'continue as new');
    await untilListed('WorkflowId="older" AND ExecutionStatus="Running"', 1);
    await untilListed('WorkflowId="younger" AND ExecutionStatus="Running"', 1);
    const check = (run: string) => checkPool({ client: server.client, pools: wholeWeights }, run, 'default');
    await assert.rejects(check('younger'), /expected no other run on the pool default, .*, got older/);
    await check('older');
    await untilListed('WorkflowId="older" AND ExecutionStatus="ContinuedAsNew"', 1);
    assert.deepEqual((await openRuns(server.client)).map(({ run }) => run).sort(), ['older', 'younger']);
    await end('older');
    await check('younger');
    await end('younger');
  });

  it('has the pool of a run from its start, before its first task', async () => {
    await startRun(server.client, 'pooled', { tasks: 'generated:train/1', pool: 'large' });
    await untilListed('WorkflowId="pooled" AND ExecutionStatus="Running"', 1);
    assert.deepEqual(
      (await openRuns(server.client)).map(({ run, pool }) => [run, pool]),
      [['pooled', 'large']],
    );
    await end('pooled');
  });

  it('keeps the sandbox of a rollout that was reset while the rollout continues', async () => {
    const rollout = await start('rollout', 'reset');
    await answerTask(server, 'reset', 'nothing');
    await resetToFirstTask(server, 'reset', rollout);
    assert.notEqual((await handle('reset').describe()).runId, rollout);
    await untilListed(`RunId="${rollout}" AND ExecutionStatus="Terminated"`, 1);

    let left = [sandboxOf(rollout)];
    const provider = {
      list: async () => left,
      remove: async () => {
        left = [];
        return true;
      },
      clearLeftovers: async () => {},
      evictImages: async () => [],
    };
    const providers = { seen: async () => new Map([['local' as const, provider]]) };
    const reaper = reaperOf(providers);
    assert.deepEqual((await reaper.look()).suspected, []);
    await end('reset');
    assert.deepEqual((await reaper.look()).suspected, ['sandbox']);
    assert.deepEqual((await reaper.look()).removed, ['sandbox']);
  });

  it('removes the sandbox of a rollout whose name is used by another one', async () => {
    const rollout = await start('rollout', 'taken');
    await end('taken');
    await start('rollout', 'taken');
    await untilListed(`RunId="${rollout}" AND ExecutionStatus="Terminated"`, 1);
    const provider = {
      list: async () => [sandboxOf(rollout)],
      remove: async () => true,
      clearLeftovers: async () => {},
      evictImages: async () => [],
    };
    const providers = { seen: async () => new Map([['local' as const, provider]]) };
    const reaper = reaperOf(providers);
    assert.deepEqual((await reaper.look()).suspected, ['sandbox']);
    assert.deepEqual((await reaper.look()).removed, ['sandbox']);
    await end('taken');
  });
});

/** A sandbox old enough for the reaper, and far from its expiry. */
const sandboxOf = (rollout: string): SandboxInfo => ({
  name: 'sandbox',
  kind: 'local',
  running: true,
  createdAtMs: 0,
  labels: {
    stack: 'keyed',
    run: 'run',
    rollout,
    epoch: 1,
    purpose: 'agent',
    expiresAtMs: Number.MAX_SAFE_INTEGER,
  },
});
