import { createBatchActivities } from '../activities/control/batch.ts';
import { createRunCheck } from '../activities/control/check-run.ts';
import { createGroupActivities } from '../activities/control/groups.ts';
import { createHostActivities } from '../activities/control/hosts.ts';
import { createReapActivities } from '../activities/control/reap.ts';
import { createRegradeActivities } from '../activities/control/regrades.ts';
import { createRewardActivity } from '../activities/control/reward.ts';
import { createScheduleActivities } from '../activities/control/schedules.ts';
import { createSweepActivities } from '../activities/control/sweeps.ts';
import { createTaskActivities } from '../activities/control/tasks.ts';
import { createTraceActivities } from '../activities/control/traces.ts';
import type { ControlActivities } from '../activities/interfaces/control.ts';
import { createAgents } from '../infra/agents/index.ts';
import type { Config } from '../infra/config.ts';
import { createEnginePools } from '../infra/engine/pools.ts';
import { createGatewayControl } from '../infra/gateway/client.ts';
import { controlSockets } from '../infra/gateway/sockets.ts';
import { createQuarantine } from '../infra/tasks/quarantine.ts';
import { createTasks } from '../infra/tasks/tasks.ts';
import { locateWorkflowBundle } from '../infra/temporal/bundle.ts';
import { resolvePolicy } from '../infra/temporal/runs.ts';
import { missingSearchAttributes } from '../infra/temporal/search-attributes.ts';
import { controlQueue } from '../workflows/contracts/queues.ts';
import { openState } from './open-state.ts';
import { runWorkers } from './process.ts';
import { createUpkeep, scheduleRetention } from './upkeep.ts';

/** Workflows kept in memory, of some 0.5 MB each: enough for a thousand rollouts in flight with their groups and sweeps. */
const cachedWorkflows = 2000;

/** Runs the control worker: all workflows and the light activities. */
export function runControl(config: Config, signal: AbortSignal): Promise<void> {
  return runWorkers(config, 'control', signal, async ({ client, connection, namespace, log }) => {
    const missing = await missingSearchAttributes(connection, namespace);
    if (missing.length > 0) {
      throw new Error(
        `namespace ${namespace} lacks the search attributes ${missing.join(', ')}; run \`temper doctor --register\` once to register them`,
      );
    }
    const shared = await openState(config);
    const { blobs: store, runs: records } = shared;
    const agents = createAgents({ cacheDir: config.cacheDir });
    const tasks = createTasks({
      store,
      roots: config.taskRoots,
      dataSets: { directory: config.cacheDir, offline: true },
    });
    const quarantine = createQuarantine(shared.common);
    const gateway = createGatewayControl(controlSockets(config.paths.gatewaySockets, config.gateways));
    const activities: ControlActivities = {
      ...createRewardActivity(),
      ...createTaskActivities({ tasks, quarantine, agent: agents.get, upstream: gateway.upstream }),
      ...createRunCheck({
        client,
        tasks,
        agent: agents.get,
        pools: createEnginePools(config.pools, config.pool, config.env),
      }),
      ...createTraceActivities(gateway, (policy) => resolvePolicy(client, policy)),
      ...createGroupActivities({ client, records }),
      ...createBatchActivities({ store, records }),
      ...createHostActivities(client),
      ...createReapActivities(client),
      ...createUpkeep(config, client, { notes: shared.hostNotes, log }),
      ...createScheduleActivities(client),
      ...createRegradeActivities({ client, tasks, quarantine, store, records }),
      ...createSweepActivities({
        client,
        tasks,
        quarantine,
        store,
        records,
        agent: agents.get,
        serving: gateway.serving,
        pinVersion: gateway.pinVersion,
        upstream: gateway.upstream,
      }),
    };
    await scheduleRetention(client);
    return [
      {
        taskQueue: controlQueue,
        workflowBundle: await locateWorkflowBundle(config.env),
        activities,
        maxCachedWorkflows: cachedWorkflows,
      },
    ];
  });
}
