import assert from 'node:assert/strict';
import { it } from 'node:test';
import { msToTs } from '@temporalio/common/lib/time.js';
import { Worker } from '@temporalio/worker';
import { createIntake } from '../../activities/host/intake.ts';
import { createLanes } from '../../activities/host/lanes.ts';
import { createPlacementTurns } from '../../activities/host/placement-turns.ts';
import { createSlots } from '../../activities/host/slots.ts';
import { endlessLease } from '../../infra/hosts/lease.ts';
import { connectWorker } from '../../infra/temporal/connection.ts';
import { hostQueues } from '../../workers/host-queues.ts';
import { hostQueue } from '../../workflows/contracts/queues.ts';
import { nextTask } from '../helpers/temporal/manual-worker.ts';
import '../helpers/temporal/quiet-runtime.ts';
import { startTestServer } from '../helpers/temporal/temporal.ts';
import { until } from '../helpers/until.ts';

/** A value of `temporal.api.enums.v1.CommandType`. */
const scheduleActivity = 1;
const host = 'adopts-many';
const capacity = 1;
/** No activity of this test looks there. */
const gatewaySockets = { sessions: '/nowhere/sessions', agents: '/nowhere/agents' };
/** More than the short stages ever needed room for. */
const agents = 150;

it('the main worker of a host takes further work while it awaits many more agents than the host has slots', async (t) => {
  const server = await startTestServer();
  t.after(() => server.close());
  const { connection, close } = await connectWorker(server.target);
  t.after(close);
  const slots = createSlots(capacity);
  const queues = hostQueues({ name: host, intake: createIntake(), gatewaySockets } as never, {
    capacity,
    sessions: {} as never,
    lanes: createLanes({ stages: 4, evaluations: 2 }),
    placing: {
      placement: { placeRollout: async () => ({ host, token: `${host}/1` }) },
      turns: createPlacementTurns({ slots, share: { allowsMore: async () => true }, backlogOf: async () => 0 }),
    },
    reaper: {
      activities: { reapSandboxes: async () => ({ removed: [], images: [], suspected: [] }) },
      reap: async () => ({ removed: [], suspected: [], images: [] }),
    },
    lease: endlessLease,
  });
  const main = queues.find(({ taskQueue }) => taskQueue === hostQueue(host));
  assert.ok(main !== undefined);
  const ended = Promise.withResolvers<void>();
  let awaited = 0;
  let reaped = 0;
  const activities = {
    awaitAgent: () => {
      awaited += 1;
      return ended.promise;
    },
    reapSandboxes: async () => {
      reaped += 1;
    },
  };
  const worker = await Worker.create({ ...main, connection, namespace: server.namespace, activities });
  const running = worker.run();
  const schedule = async (type: string, count: number): Promise<void> => {
    const { namespace } = server;
    await server.client.workflow.start('manual', { workflowId: type, taskQueue: type });
    const { taskToken } = await nextTask(server, type);
    const commands = Array.from({ length: count }, (_, index) => ({
      commandType: scheduleActivity,
      scheduleActivityTaskCommandAttributes: {
        activityId: `${index}`,
        activityType: { name: type },
        taskQueue: { name: hostQueue(host) },
        startToCloseTimeout: msToTs('10 minutes'),
      },
    }));
    await server.connection.workflowService.respondWorkflowTaskCompleted({ namespace, taskToken, commands });
  };
  try {
    await schedule('awaitAgent', agents);
    await until(() => awaited === agents);
    await schedule('reapSandboxes', 1);
    await until(() => reaped === 1);
  } finally {
    ended.resolve();
    worker.shutdown();
    await running;
  }
});
