import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { Worker } from '@temporalio/worker';
import { connectWorker, type WorkerConnection } from '../../infra/temporal/connection.ts';
import { creationWorkers } from '../../workers/creation-worker.ts';
import { controlQueue, creationQueue } from '../../workflows/contracts/queues.ts';
import type { rollout } from '../../workflows/index.ts';
import { createFileRollouts } from '../helpers/store/file-store.ts';
import { startActivity } from '../helpers/temporal/manual-activity.ts';
import { startScriptedWorkers } from '../helpers/temporal/scripted-activities.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';

let server: TestServer;
/** Each host has a connection of its own. */
let hosts: readonly WorkerConnection[];

before(async () => {
  server = await startTestServer();
  hosts = await Promise.all([1, 2].map(() => connectWorker(server.target)));
});
after(async () => {
  for (const host of hosts) await host.close();
  await server.close();
});

it('the server allows no more creations per second than the limit, however many hosts take them', async () => {
  const { namespace } = server;
  const start = ({ connection }: WorkerConnection) =>
    Promise.all(creationWorkers(4).map((options) => Worker.create({ connection, namespace, ...options })));
  const workers = (await Promise.all(hosts.map(start))).flat();
  const running = workers.map((worker) => worker.run());
  const activity = { type: 'allowCreation', taskQueue: creationQueue, heartbeatTimeoutMs: 60_000 };
  /** Returns the time at which the server gave the task out, in seconds. */
  const ask = async (): Promise<number> => {
    const asked = await startActivity(server, activity);
    await asked.end();
    const { events } = await server.client.workflow.getHandle(asked.workflowId).fetchHistory();
    const started = events?.find((event) => event.activityTaskStartedEventAttributes != null)?.eventTime;
    return Number(started?.seconds) + Number(started?.nanos) / 1e9;
  };
  const times = await Promise.all(Array.from({ length: 10 }, ask));
  // Up to four tasks are given out at once; a limit per host would give out all within half a second.
  assert.ok(Math.max(...times) - Math.min(...times) > 1, String(times));
  for (const worker of workers) worker.shutdown();
  await Promise.all(running);
});

it('a rollout asks for each of its sandboxes where its host limits them', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-creations-'));
  const asked: string[] = [];
  const script = { reward: () => 1, allowCreation: (rollout: string) => void asked.push(rollout) };
  const workers = await startScriptedWorkers(server, home, script);
  try {
    const args = [{ task: 'scripted:0' }];
    const options = { taskQueue: controlQueue, workflowId: 'limited', args };
    const { outcome } = await server.client.workflow.execute<typeof rollout>('rollout', options as never);
    assert.deepEqual([outcome, asked], ['scored', ['limited', 'limited']]);
  } finally {
    await workers.close();
    await rm(home, { recursive: true, force: true });
  }
});

it('a rollout that is cancelled while it waits for its sandbox has used none', async () => {
  const home = await mkdtemp(join(tmpdir(), 'temper-creations-'));
  const workflowId = 'cancelled-before';
  const handle = server.client.workflow.getHandle(workflowId);
  // Its end is awaited, so that no permission comes before the cancel.
  const allowCreation = async (): Promise<void> => {
    await handle.cancel();
    await handle.result().catch(() => undefined);
  };
  const script = { reward: () => 1, allowCreation };
  const workers = await startScriptedWorkers(server, home, script as never);
  try {
    const options = { taskQueue: controlQueue, workflowId, args: [{ task: 'scripted:0' }] };
    await assert.rejects(server.client.workflow.execute<typeof rollout>('rollout', options as never));
    const rollouts = createFileRollouts(home);
    const costs: unknown[] = [];
    for await (const { key } of rollouts.list(workflowId)) {
      const { outcome, cost } = (await rollouts.read(key))?.result ?? assert.fail(key);
      costs.push([outcome, cost?.sandboxSeconds]);
    }
    assert.deepEqual(costs, [['cancelled', {}]]);
  } finally {
    await workers.close();
    await rm(home, { recursive: true, force: true });
  }
});

it('a host without a limit has no worker for it', () => {
  assert.deepEqual(creationWorkers(null), []);
});
