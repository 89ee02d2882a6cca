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
import type { ControlActivities } from '../activities/interfaces/control.ts';
import { createAgents } from '../infra/agents/index.ts';
import { loadOwnAgents } from '../infra/agents/own-agents.ts';
import { askEngines } from '../infra/engine/ask-engines.ts';
import { servedVersions } from '../infra/engine/engine.ts';
import { createEnginePools } from '../infra/engine/pools.ts';
import { createUpstreams } from '../infra/gateway/upstream/upstreams.ts';
import { usableMemory } from '../infra/machine/usable-memory.ts';
import { createRewards } from '../infra/rewards.ts';
import type { Config } from '../infra/settings/config.ts';
import { createQuarantine } from '../infra/tasks/quarantine.ts';
import { createTasks } from '../infra/tasks/tasks.ts';
import { locateWorkflowBundle } from '../infra/temporal/bundle.ts';
import { requireFeatures } from '../infra/temporal/features.ts';
import { missingSearchAttributes } from '../infra/temporal/search-attributes.ts';
import { followsServer } from '../infra/temporal/stack-namespace.ts';
import { controlQueue } from '../workflows/contracts/queues.ts';
import type { Upstream } from '../workflows/contracts/upstream.ts';
import { cachedWorkflows } from './cached-workflows.ts';
import { openState } from './open-state.ts';
import { runWorkers } from './process.ts';
import { createUpkeep, takeNamespace } from './upkeep.ts';
import { versionOf } from './worker-version.ts';

/**
 * The number of workflow tasks at once. One thread takes turns at all of them, so that more would not be faster, and each would
 * take longer: long replays (40 at once by the SDK's default) would miss their time limit together.
 */
const workflowTasksAtOnce = 10;

/** Runs the control worker: all workflows and the light activities. */
export function runControl(config: Config, signal: AbortSignal): Promise<void> {
  return runWorkers({ config, part: 'control' }, signal, async ({ client, connection, namespace, log }) => {
    const missing = await missingSearchAttributes(connection, namespace);
    if (missing.length > 0) {
      throw new Error(
        `namespace ${namespace} lacks the search attributes ${missing.join(', ')}; run \`temper doctor --register\` once to register them`,
      );
    }
    await requireFeatures(connection, namespace, { versions: config.deployment !== null });
    const shared = await openState(config);
    await takeNamespace({ ...shared, client }, { mayMove: followsServer(config.store) });
    const { blobs: store, runs: records, rollouts, starts } = shared;
    const rewards = await createRewards(config.rewards);
    const agents = createAgents({ cacheDir: config.cacheDir, own: await loadOwnAgents(config.agents) });
    const tasks = createTasks({
      store,
      roots: config.taskRoots,
      dataSets: { directory: config.cacheDir, offline: true },
    });
    const { network } = config;
    const quarantine = createQuarantine(shared.common);
    const upstreams = createUpstreams(config.upstreams, config.env);
    const upstream = async (name: string): Promise<Upstream> => {
      const { model } = await upstreams.find(name);
      return { name, model };
    };
    const pools = createEnginePools(config.pools, config.pool, config.env);
    const activities: ControlActivities = {
      ...createRewardActivity(rewards),
      ...createTaskActivities({ tasks, store, records, quarantine, agent: agents.get, rewards, network, upstream }),
      ...createRunCheck({ client, tasks, store, starts, quarantine, network, agent: agents.get, rewards, pools }),
      ...createGroupActivities({ client, records, rollouts, starts }),
      ...createBatchActivities({ store, records }),
      ...createHostActivities({ client, hosts: shared.hosts, lostAfterMs: config.hostLostAfterMs }),
      ...createReapActivities(client),
      ...createUpkeep(config, client, { notes: shared.hostNotes, log }),
      ...createScheduleActivities(client),
      ...createRegradeActivities({ client, tasks, quarantine, store, records, rollouts, starts }),
      ...createSweepActivities({
        client,
        tasks,
        quarantine,
        network,
        store,
        records,
        rollouts,
        starts,
        agent: agents.get,
        serving: (policy) => askEngines(pools, policy, servedVersions),
        pinVersion: ({ policy, version }, signal) =>
          askEngines(pools, policy, (engine) => engine.pinVersion(version, signal)),
        upstream,
      }),
    };
    return [
      {
        taskQueue: controlQueue,
        workflowBundle: await locateWorkflowBundle(config.env),
        ...versionOf(config.deployment),
        activities,
        maxCachedWorkflows: cachedWorkflows(usableMemory()),
        maxConcurrentWorkflowTaskExecutions: workflowTasksAtOnce,
      },
    ];
  });
}
