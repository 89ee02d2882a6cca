import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { TrainerActivities } from '../../activities/interfaces/trainer.ts';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { backlogOf } from '../../infra/temporal/backlog.ts';
import { shortKey } from '../../workflows/contracts/ids.ts';
import { controlQueue, sharePlacementQueue, trainerQueue } from '../../workflows/contracts/queues.ts';
import type { RunStatus } from '../../workflows/contracts/run.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';
import { type HostStages, startTestWorkers, type TestWorkers } from '../helpers/temporal/workers.ts';
import { until } from '../helpers/until.ts';

/*
 * Two hosts whose slots cannot be divided by the weights, while those of the whole fleet can. Slots are released one
 * by one, and none while a run starts.
 */
const capacities = { first: 6, second: 10 } as const;
const all = Object.values(capacities).reduce((sum, one) => sum + one, 0);

describe('runs that want more slots than two hosts have', () => {
  let home: string;
  let server: TestServer;
  let hosts: TestWorkers[];
  let trainer: { close(): Promise<void> };
  let task: string;
  const gate = createGate();
  const open = new Map<string, WorkflowHandle>();

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-shares-'));
    server = await startTestServer();
    const tasks = join(home, 'tasks');
    task = await writeHarborTask(tasks, 'quick', { solve: 'true' });
    hosts = [];
    let before = 0;
    for (const [host, capacity] of Object.entries(capacities)) {
      const provider = createLocalProvider({ root: join(home, host), stack: host, spawner: createHelperSpawner() });
      const checkRun = async () => null;
      const fleet = { before, all };
      before += capacity;
      const placing = { host, provider, capacity, fleetSlots: async () => fleet, stages: gate.before };
      hosts.push(await startTestWorkers({ server, home, ...placing, taskRoots: [tasks], control: { checkRun } }));
    }
    trainer = await startIdleTrainer(server);
  });
  after(async () => {
    for (const run of open.keys()) await cancel(run);
    await trainer?.close();
    for (const host of hosts ?? []) await host.close();
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  /**
   * Starts a run that never has enough groups for a step, so that it wants slots until the end of the test. No agent begins until
   * all its rollouts wait for slots. Returns the end of its key.
   */
  async function train(workflowId: string, weight: number, groupsPerStep: number): Promise<string> {
    gate.close();
    const settings = { agent: 'oracle', sandbox: 'local' };
    const args = [{ tasks: task, steps: 1, groupsPerStep, rolloutsPerGroup: 2, maxStaleness: 0, weight, settings }];
    open.set(
      workflowId,
      await server.client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId, args }),
    );
    const { runKey } = await until(() => statusOf(workflowId).catch(() => null), 600_000);
    const key = shortKey(runKey);
    const waiting = (): Promise<number> => backlogOf(server.client, sharePlacementQueue(key));
    await until(async () => held(key) + (await waiting()) >= 2 * groupsPerStep - hosts.length, 600_000);
    gate.open();
    return key;
  }
  async function cancel(run: string): Promise<void> {
    const handle = open.get(run);
    open.delete(run);
    await handle?.cancel();
    await handle?.result().catch(() => undefined);
  }
  const statusOf = (run: string): Promise<RunStatus> => server.client.workflow.getHandle(run).query('status');
  const held = (share: string): number =>
    hosts.reduce((sum, { host: { slots } }) => sum + slots.takenBy({ share, sweep: false }), 0);

  /** Returns the parts of the slots that runs hold, on average over the time in which as many agents begin as there are slots. */
  async function partsOverATurnover(keys: readonly string[]): Promise<number[]> {
    const before = gate.passed();
    const sums = keys.map(() => 0);
    let lookedAt = performance.now();
    await until(() => {
      const sinceLook = performance.now() - lookedAt;
      lookedAt += sinceLook;
      for (const [index, key] of keys.entries()) sums[index] = (sums[index] ?? 0) + sinceLook * held(key);
      return gate.passed() >= before + all;
    }, 600_000);
    const sum = sums.reduce((so, one) => so + one, 0);
    return sums.map((one) => one / sum);
  }
  const near = (parts: readonly number[], expected: readonly number[]): void => {
    for (const [index, part] of parts.entries()) {
      const want = expected[index] ?? 0;
      assert.ok(
        Math.abs(part - want) <= 0.1,
        `expected parts of ${expected.join(', ')}, got ${parts.map((one) => one.toFixed(2))}`,
      );
    }
  };

  it('hold them by their weights, also one that comes late, and one that is cancelled leaves its part to the others', async () => {
    const three = await train('three', 3, 70);
    await until(async () => held(three) === all, 600_000);
    const one = await train('one', 1, 20);
    await until(async () => held(one) === all / 4, 600_000);
    near(await partsOverATurnover([three, one]), [3 / 4, 1 / 4]);

    const late = await train('late', 4, 36);
    await until(async () => held(late) >= all / 2, 600_000);
    near(await partsOverATurnover([three, one, late]), [3 / 8, 1 / 8, 4 / 8]);

    // No agent of the others begins until they hold every slot, so that they cannot run out of rollouts before.
    gate.close();
    const cancelled = cancel('three');
    await until(() => held(three) === 0 && held(one) + held(late) === all, 600_000);
    for (const run of ['one', 'late']) {
      const { rollouts, phase } = await until(() => statusOf(run).catch(() => null), 600_000);
      assert.deepEqual([phase, rollouts.infra, rollouts.cancelled, rollouts.stale], ['running', 0, 0, 0], run);
    }
    await cancelled;
  });
});

/** Holds agents with their slots while it is closed, and lets them begin one by one while it is open. */
function createGate() {
  const pauseMs = 250;
  let opened = Promise.withResolvers<void>();
  let turn = Promise.resolve();
  let passed = 0;
  function pass(): Promise<void> {
    turn = turn
      .then(() => opened.promise)
      .then(() => sleep(pauseMs))
      .then(() => {
        passed += 1;
      });
    return turn;
  }
  return {
    passed: (): number => passed,
    close: (): void => {
      opened = Promise.withResolvers();
    },
    open: (): void => opened.resolve(),
    before: (real: HostStages): HostStages => ({
      ...real,
      async awaitAgent(input) {
        const activity = Context.current();
        const beating = setInterval(() => activity.heartbeat(), 1_000);
        await Promise.race([pass(), activity.cancelled]).finally(() => clearInterval(beating));
        return real.awaitAgent(input);
      },
    }),
  };
}

/** Runs the trainer's activities of runs that make no step. */
async function startIdleTrainer(server: TestServer): Promise<{ close(): Promise<void> }> {
  const connection = await NativeConnection.connect({ address: server.address });
  const activities: Omit<TrainerActivities, 'update'> = {
    prepareTrainer: async () => ({ metrics: {} }),
    syncWeights: async () => ({ replicas: 0, maxLogprobGap: 0 }),
    skipUpdate: async () => {},
    restoreWeights: async () => ({ restored: [] }),
  };
  const worker = await Worker.create({ connection, namespace: server.namespace, taskQueue: trainerQueue, activities });
  const running = worker.run();
  return {
    async close() {
      worker.shutdown();
      await running;
      await connection.close();
    },
  };
}
