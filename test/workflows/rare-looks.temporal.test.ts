import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { budgetPause } from '../../workflows/algorithms/budget.ts';
import { runStatusQuery, setBudgetUpdate } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import { bundleChanged } from '../helpers/temporal/changed-workflows.ts';
import { type ScriptedWorkers, startScriptedWorkers } from '../helpers/temporal/scripted-activities.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';
import { until as untilWithin } from '../helpers/until.ts';

const until = <Seen>(look: () => Seen | Promise<Seen>) => untilWithin(look, 240_000);
const request: RunRequest = { tasks: 'generated:train/1', steps: 1, groupsPerStep: 1, rolloutsPerGroup: 2 };

/** The runs look after 250 ms in which nothing changed, and not after a minute. */
describe('a run at rest', () => {
  let home: string;
  let server: TestServer;
  let workers: ScriptedWorkers;
  let gate = Promise.withResolvers<void>();
  let restores = 0;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-rest-'));
    server = await startTestServer();
    const soon = (module: string): string => module.replace(/reconcileAfterMs = 60_?000/, 'reconcileAfterMs = 250');
    const script = {
      reward: (id: string): number => (id.endsWith('rollout-0') ? 0 : 1),
      update: () => gate.promise,
      restore: async () => {
        restores += 1;
      },
    };
    const workflowBundle = await bundleChanged('activity-options.ts', soon);
    workers = await startScriptedWorkers(server, home, script, { workflowBundle });
  });
  beforeEach(() => {
    gate = Promise.withResolvers<void>();
  });
  after(async () => {
    gate.resolve();
    await workers?.close();
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  const start = (workflowId: string, rest: Partial<RunRequest> = {}) =>
    server.client.workflow.start('trainingRun', {
      taskQueue: controlQueue,
      workflowId,
      args: [{ ...request, ...rest }],
    });
  /** Returns the times after which a run was to look, in milliseconds. */
  const looks = async (workflowId: string): Promise<readonly number[]> => {
    const { events } = await server.client.workflow.getHandle(workflowId).fetchHistory();
    return (events ?? []).flatMap(({ timerStartedEventAttributes: timer }) => {
      const { seconds, nanos } = timer?.startToFireTimeout ?? {};
      return timer ? [Number(seconds ?? 0) * 1000 + (nanos ?? 0) / 1e6] : [];
    });
  };
  const areDoubled = (times: readonly number[]): boolean => [1000, 2000, 4000].every((time) => times.includes(time));

  it('looks less often the longer a step takes', async () => {
    const handle = await start('slow-step');
    await until(async () => areDoubled(await looks('slow-step')));
    gate.resolve();
    const status: RunStatus = await handle.result();
    assert.equal(status.step, 1);
  });

  it('looks less often the longer it is paused without a group, and restores no weights then', async () => {
    gate.resolve();
    const handle = await start('paused', { budget: { rollouts: 2 }, steps: 3 });
    const status = (): Promise<RunStatus> => handle.query(runStatusQuery);
    await until(async () => (await status()).pausedBecause?.startsWith(budgetPause) ?? false);
    const restored = restores;
    await until(async () => areDoubled(await looks('paused')));
    assert.equal(restores, restored);
    await handle.executeUpdate(setBudgetUpdate, { args: [{ rollouts: null }] });
    assert.equal((await handle.result()).step, 3);
  });

  it('starts groups in the midst of a long step as soon as its budget is raised', async () => {
    const handle = await start('raised', { budget: { rollouts: 2 }, steps: 2, maxStaleness: 1 });
    const status = (): Promise<RunStatus> => handle.query(runStatusQuery);
    await until(async () => (await looks('raised')).includes(16_000));
    assert.equal((await status()).groupsStarted, 1);
    await handle.executeUpdate(setBudgetUpdate, { args: [{ rollouts: 4 }] });
    await until(async () => (await status()).groupsStarted === 2);
    const { events } = await handle.fetchHistory();
    const raisedAt = events?.findIndex((event) => event.workflowExecutionUpdateAcceptedEventAttributes != null) ?? -1;
    const ends = events
      ?.slice(raisedAt)
      .filter((event) => event.timerFiredEventAttributes ?? event.timerCanceledEventAttributes);
    assert.ok(ends?.[0]?.timerCanceledEventAttributes, 'the wait was ended by the budget');
    gate.resolve();
    assert.equal((await handle.result()).step, 2);
  });
});
