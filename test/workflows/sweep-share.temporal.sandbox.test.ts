import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';
import { startTestWorkers, type TestWorkers } from '../helpers/temporal/workers.ts';
import { until as untilWithin } from '../helpers/until.ts';

/** A host asks for work at intervals, which are long on a busy machine. */
const limitMs = 240_000;
const until = <Seen>(look: () => Seen | Promise<Seen>) => untilWithin(look, limitMs);

describe('the four slots of a host', () => {
  let home: string;
  let server: TestServer;
  let workers: TestWorkers;
  let task: string;
  const open = new Set<WorkflowHandle>();

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-share-'));
    server = await startTestServer();
    const provider = createLocalProvider({
      root: join(home, 'sandboxes'),
      stack: 'test-stack',
      spawner: createHelperSpawner(),
    });
    const tasks = join(home, 'tasks');
    // Its agent runs until it is cancelled.
    task = await writeHarborTask(tasks, 'stays', { solve: 'while true; do sleep 1; done' });
    workers = await startTestWorkers({ server, home, provider, taskRoots: [tasks], capacity: 4 });
  });
  after(async () => {
    for (const handle of open) await cancel(handle);
    await workers?.close();
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  const settings = { agent: 'oracle', sandbox: 'local' };
  async function start(type: string, workflowId: string, request: object): Promise<WorkflowHandle> {
    const handle = await server.client.workflow.start(type, { taskQueue: controlQueue, workflowId, args: [request] });
    open.add(handle);
    return handle;
  }
  const train = (id: string): Promise<WorkflowHandle> => start('group', id, { task, rolloutsPerGroup: 1, settings });
  const sweep = (id: string): Promise<WorkflowHandle> =>
    start('evaluationSweep', id, { tasks: task, count: 1, attempts: 4, settings });
  async function cancel(handle: WorkflowHandle): Promise<void> {
    open.delete(handle);
    await handle.cancel();
    await handle.result().catch(() => undefined);
  }

  /** The rollouts of a sweep that wait for a slot, each with the length of its history and its activity attempt. */
  async function waiting(id: string): Promise<string[]> {
    const found: string[] = [];
    const query = `TemperRun="${id}" AND WorkflowType="rollout" AND ExecutionStatus="Running"`;
    for await (const { workflowId } of server.client.workflow.list({ query })) {
      const { raw, historyLength } = await server.client.workflow.getHandle(workflowId).describe();
      const pending = raw.pendingActivities?.find(({ activityType }) => activityType?.name === 'placeRollout');
      if (pending) found.push(`${workflowId} ${historyLength} ${pending.state} ${pending.attempt}`);
    }
    return found.sort();
  }

  it('go to a sweep up to one half while training runs, and to training at once otherwise', async () => {
    const { slots } = workers.host;
    const first = await train('first');
    await until(() => Promise.resolve(slots.taken === 1));
    const swept = await sweep('beside');
    await until(() => Promise.resolve(slots.takenBySweeps === 2));
    const before = await until(async () => {
      const found = await waiting('beside');
      return found.length === 2 ? found : null;
    });
    assert.deepEqual([slots.taken, slots.takenBySweeps], [3, 2]);

    const second = await train('second');
    await until(() => Promise.resolve(slots.taken === 4));
    assert.equal(slots.takenBySweeps, 2, 'its rollout has the slot that was kept free');
    assert.deepEqual(await waiting('beside'), before, 'what waits writes nothing');
    for (const handle of [first, second, swept]) await cancel(handle);
    await until(() => Promise.resolve(slots.taken === 0));
  });

  it('may all go to a sweep without training, and are freed for training when it begins', async () => {
    const { slots } = workers.host;
    const swept = await sweep('alone');
    await until(() => Promise.resolve(slots.takenBySweeps === 4));
    const group = await train('later');
    const query = 'TemperRun="alone" AND WorkflowType="rollout" AND ExecutionStatus="Running"';
    const ids = await until(async () => {
      const found: string[] = [];
      for await (const { workflowId } of server.client.workflow.list({ query })) found.push(workflowId);
      return found.length === 4 ? found : null;
    });
    await cancel(server.client.workflow.getHandle(ids[0] ?? ''));
    await until(() => Promise.resolve(slots.taken === 4 && slots.takenBySweeps === 3));
    for (const handle of [group, swept]) await cancel(handle);
    await until(() => Promise.resolve(slots.taken === 0));
  });
});
