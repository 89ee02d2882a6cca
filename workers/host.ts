import type { WorkerOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { createAgentActivities } from '../activities/host/agent.ts';
import { createEvaluation } from '../activities/host/evaluate.ts';
import type { Host } from '../activities/host/host.ts';
import { createImageActivities } from '../activities/host/images.ts';
import { createPlaces } from '../activities/host/places.ts';
import { createReaper, type Reaper } from '../activities/host/reap.ts';
import { createCleanUp, createPlacement, createProvisioning } from '../activities/host/sandbox.ts';
import { createSweepShare, type SweepShare, watchTraining } from '../activities/host/sweep-share.ts';
import { createAgents } from '../infra/agents/index.ts';
import { createRuntime, runtimeTarget } from '../infra/agents/runtime.ts';
import type { Config } from '../infra/config.ts';
import { secretOf } from '../infra/gateway/secret.ts';
import { createVerdictCache } from '../infra/grading/verdict-cache.ts';
import { openProviders } from '../infra/sandbox/index.ts';
import { openStack } from '../infra/stack.ts';
import { createFileStore } from '../infra/store/files.ts';
import { createRecords } from '../infra/store/records.ts';
import { createTasks } from '../infra/tasks/tasks.ts';
import { scheduleReaper } from '../infra/temporal/reaper-schedule.ts';
import { cleanUpQueue, evaluationQueue, hostQueue, imageQueue, placementQueue } from '../workflows/contracts/ids.ts';
import { placementTuner } from './placement-tuner.ts';
import { runWorkers } from './process.ts';

/** Where commands find programs in a local sandbox: our own Node first, because the host's may be anywhere. */
const localPath = `${runtimeTarget}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;
/** Each agent in progress holds a slot; the other stages need some beside them. */
const shortStageSlots = 100;
const cleanUpSlots = 16;
/** Most of them wait for an image that another one fetches; how many are fetched at once is the provider's matter. */
const imageSlots = 64;
const pollers = { type: 'simple-maximum', maximum: 2 } as const;

/** The sandboxes of this machine: five queues with slots of their own, so that nothing starves evaluations or clean-up. */
export async function runHost(config: Config, signal: AbortSignal): Promise<void> {
  const host = await openHost(config);
  try {
    await runWorkers(config, 'host', signal, async ({ client, log }) => {
      const reaper = createReaper(host, client);
      await sayWhatIsAway(host, config.sandbox, log);
      await reapAtStart(reaper, log, signal);
      await scheduleReaper(client, host.name);
      const cleanUp = { ...createCleanUp(host), ...reaper.activities };
      const share = createSweepShare(host, config.sweepShare, watchTraining(client));
      return queues(config, host, share, cleanUp);
    });
  } finally {
    for (const provider of host.providers.all.values()) await provider.close();
  }
}

/** What is not ready and may come up keeps no worker from starting: its rollouts wait, all others go on. */
async function sayWhatIsAway(
  { providers }: Pick<Host, 'providers'>,
  preferred: Config['sandbox'],
  log: Logger,
): Promise<void> {
  const seen = await providers.seen();
  for (const [kind, provider] of providers.all) {
    if (seen.has(kind)) continue;
    const { summary } = await provider.describe();
    const text = `no ${kind} sandboxes here now; whoever needs them asks again`;
    log[kind === preferred ? 'warn' : 'info']({ kind, got: summary }, text);
  }
}

/** One sandbox that resists must not keep all others from being served: it is told, and tried again by the schedule. */
async function reapAtStart(
  reaper: Pick<Reaper, 'reap'>,
  log: Pick<Logger, 'info' | 'warn'>,
  signal: AbortSignal,
): Promise<void> {
  try {
    log.info(await reaper.reap(signal), 'reaped what earlier rollouts left');
  } catch (error) {
    signal.throwIfAborted();
    const todo =
      'the reaper tries again each minute; if it goes on failing, mend what the error names, or remove it by hand';
    log.warn({ error }, `expected to remove all that earlier rollouts left, some of it resists: ${todo}`);
  }
}

function queues(config: Config, host: Host, share: SweepShare, cleanUp: object): WorkerOptions[] {
  const common = { activityTaskPollerBehavior: pollers, maxEagerActivityReservationsPerWorkflowTask: 0 };
  return [
    {
      ...common,
      taskQueue: placementQueue,
      activities: createPlacement(host, share),
      tuner: placementTuner(host.places),
    },
    {
      ...common,
      taskQueue: imageQueue,
      activities: createImageActivities(host),
      maxConcurrentActivityTaskExecutions: imageSlots,
    },
    {
      ...common,
      taskQueue: hostQueue(host.name),
      activities: { ...createProvisioning(host), ...createAgentActivities(host) },
      maxConcurrentActivityTaskExecutions: config.capacity + shortStageSlots,
    },
    {
      ...common,
      taskQueue: evaluationQueue,
      activities: createEvaluation(host),
      maxConcurrentActivityTaskExecutions: config.evaluations,
    },
    {
      ...common,
      taskQueue: cleanUpQueue(host.name),
      activities: cleanUp,
      maxConcurrentActivityTaskExecutions: cleanUpSlots,
    },
  ];
}

/** Opens what this machine offers to rollouts; whoever does so closes its providers. */
export async function openHost(config: Config): Promise<Host> {
  const stack = await openStack(config.paths);
  const store = createFileStore(config.paths.store);
  const agents = createAgents({ cacheDir: config.cacheDir });
  const runtime = createRuntime({ cacheDir: config.cacheDir });
  const providers = await openProviders({
    stack: stack.id,
    root: config.paths.sandboxes,
    docker: config.docker,
    images: config.paths.images,
    accounts: { directory: config.dockerConfigDir, env: config.env },
    preferred: config.sandbox,
  });
  return {
    name: config.host,
    stack: stack.id,
    store,
    verdicts: createVerdictCache({ records: createRecords(config.paths.verdicts), store }),
    places: createPlaces(config.capacity),
    tasks: createTasks({
      store,
      roots: config.taskRoots,
      dataSets: { directory: config.cacheDir, offline: true },
    }),
    providers,
    choose: providers.choose,
    agent: agents.get,
    gatewayDir: config.paths.gatewaySockets.agents,
    secretOf: (session) => secretOf(stack.key, session),
    pathOf: (kind) => (kind === 'local' ? localPath : null),
    evaluationMounts: async (kind) => (kind === 'local' ? [{ ...(await runtime.prepare()), readOnly: true }] : []),
  };
}
