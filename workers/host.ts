import type { Logger } from 'pino';
import { createAdmission } from '../activities/host/admission.ts';
import type { Host } from '../activities/host/host.ts';
import { createIntake } from '../activities/host/intake.ts';
import { createLanes } from '../activities/host/lanes.ts';
import { createPlacement } from '../activities/host/placement.ts';
import { createPlacementTurns } from '../activities/host/placement-turns.ts';
import { createReaper, type Reaper } from '../activities/host/reap.ts';
import { createSlots } from '../activities/host/slots.ts';
import { createSweepShare, watchTraining } from '../activities/host/sweep-share.ts';
import { createTraceActivities } from '../activities/host/traces.ts';
import { createAgents } from '../infra/agents/index.ts';
import { loadOwnAgents } from '../infra/agents/own-agents.ts';
import { createRuntime, runtimeTarget } from '../infra/agents/runtime.ts';
import { createPublicNetwork } from '../infra/egress/network.ts';
import { createEgressPlaces } from '../infra/egress/places.ts';
import { createGatewayControl } from '../infra/gateway/client.ts';
import { secretOf } from '../infra/gateway/secret.ts';
import { requireSharedJournals } from '../infra/gateway/sessions/journal-directory.ts';
import { controlSockets } from '../infra/gateway/sockets.ts';
import { createVerdictCache } from '../infra/grading/verdict-cache.ts';
import { readFleetSlots } from '../infra/hosts/fleet-slots.ts';
import type { Lease } from '../infra/hosts/lease.ts';
import { createBuildProxies } from '../infra/images/build-proxy.ts';
import { needOf, usualTask } from '../infra/machine/fit.ts';
import { readLevels } from '../infra/machine/read-levels.ts';
import { capacityWarning, rolloutDirectories, rolloutsThatFit } from '../infra/machine/rollouts-that-fit.ts';
import { createHelperSpawner } from '../infra/process/spawner/through-helper.ts';
import { blobGraceMs } from '../infra/retention/category.ts';
import { createKeptResults } from '../infra/sandbox/kept-results.ts';
import { hasImage, openProviders } from '../infra/sandbox/providers.ts';
import type { Config } from '../infra/settings/config.ts';
import { openStackKeys } from '../infra/stack.ts';
import { createTasks } from '../infra/tasks/tasks.ts';
import { backlogOf } from '../infra/temporal/backlog.ts';
import { resolvePolicy } from '../infra/temporal/runs.ts';
import { openShares } from '../infra/temporal/shares.ts';
import { followsServer, requireNamespace } from '../infra/temporal/stack-namespace.ts';
import { TemperFailure } from '../workflows/contracts/failures.ts';
import { adoptionWorkers } from './adoption-workers.ts';
import { checkClocks } from './check-clocks.ts';
import { claimName, keepHost, openLease } from './claim-host.ts';
import { creationWorkers } from './creation-worker.ts';
import { hostQueues } from './host-queues.ts';
import { whileLeased } from './leased-worker.ts';
import { openState, type StackState } from './open-state.ts';
import { watchShares } from './placement-workers.ts';
import { runWorkers } from './process.ts';
import { reportAdmission } from './report-admission.ts';
import { reportLanes } from './report-lanes.ts';
import { returnAttempts } from './return-attempts.ts';
import { ensureSchedule } from './schedules.ts';

/** PATH of commands in a local sandbox. temper's own Node comes first, because the host's may be anywhere. */
const localPath = `${runtimeTarget}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;
/** The longest time that a leaked sandbox outlives its rollout. */
const reapEvery = '1m';

/** Runs the host worker until the signal or the loss of the host ends it. */
export async function runHost(config: Config, signal: AbortSignal): Promise<void> {
  const shared = await openState(config);
  await requireSharedJournals(config.sharedJournals, config.paths.journals);
  const lease = openLease(config, shared);
  const host = await openHost(config, shared, lease);
  const gateway = createGatewayControl(controlSockets(config.paths.gatewaySockets, config.gateways));
  const ending = new AbortController();
  const ended = AbortSignal.any([signal, ending.signal]);
  let kept: Promise<void> = Promise.resolve();
  try {
    await runWorkers(config, 'host', ended, async ({ client, log, startWorker }) => {
      await requireNamespace({ ...shared, client }, { mayMove: followsServer(config.store) });
      const context = { config, host, hosts: shared.hosts, lease, log };
      await claimName(context, ended);
      kept = keepHost(context, ended);
      kept.catch((error: unknown) => ending.abort(error));
      checkClocks({ client, host: host.name, state: shared, log }, ended).then(
        (refusal) => refusal === null || ending.abort(new Error(refusal)),
        (error: unknown) => log.warn({ error }, 'could not compare the clocks of host, store and Temporal server'),
      );
      reportAdmission(host.admission, { host: host.name, notes: shared.hostNotes, log });
      const warning = capacityWarning(config.capacity, rolloutsThatFit(config));
      if (warning !== null) log.warn(warning);
      const reaper = createReaper(host, client);
      await logUnavailableProviders(host, config.sandbox, log);
      await reapAtStart(reaper, log, ended);
      await ensureSchedule(client, {
        scheduleId: `temper-reaper-${host.name}`,
        every: reapEvery,
        workflowType: 'reaper',
        args: [{ host: host.name }],
        summary: `removes what dead rollouts left on ${host.name}`,
      });
      const share = createSweepShare(host.slots, config.sweepShare, watchTraining(client));
      const lanes = createLanes({ stages: config.lanes, evaluations: config.evaluations });
      reportLanes(lanes, { host: host.name, records: shared.lanes, log }, ended);
      const sessions = createTraceActivities(gateway, (policy) => resolvePolicy(client, policy));
      const turns = createPlacementTurns({
        slots: host.slots,
        share,
        backlogOf: (queue) => backlogOf(client, queue),
      });
      const { createsPerSecond } = config;
      const limitsCreations = createsPerSecond !== null;
      const placing = { turns, placement: createPlacement({ ...host, share, turns, limitsCreations }) };
      const fleetSlots = () => readFleetSlots(shared.hosts, { name: host.name, capacity: config.capacity });
      const watch = { ...placing, slots: host.slots, log, openShares: () => openShares(client), fleetSlots };
      void watchShares({ ...watch, start: startWorker }, ended);
      void returnAttempts({ client, host: host.name, log }, ended);
      const adopting = config.sharedJournals === null ? [] : adoptionWorkers(host, gateway);
      return [
        ...creationWorkers(createsPerSecond),
        ...adopting.map((one) => whileLeased(lease, one)),
        ...hostQueues(host, { capacity: config.capacity, sessions, lanes, placing, reaper, lease }),
      ];
    });
    await kept;
    if (!signal.aborted) ending.signal.throwIfAborted();
  } finally {
    ending.abort();
    await gateway.end();
    host.admission.close();
    for (const provider of host.providers.all.values()) await provider.close();
  }
}

/** Logs the providers that are not ready. They must not block the worker: only rollouts that need them wait. */
async function logUnavailableProviders(
  { providers }: Pick<Host, 'providers'>,
  preferred: Config['sandbox'],
  log: Logger,
): Promise<void> {
  const seen = await providers.seen();
  for (const [kind, provider] of providers.all) {
    if (seen.has(kind)) continue;
    const { summary } = await provider.describe();
    const text = `${kind} sandboxes are unavailable; rollouts that need them wait and retry`;
    log[kind === preferred ? 'warn' : 'info']({ kind, got: summary }, text);
  }
}

/** Removes what earlier rollouts left behind. A sandbox that cannot be removed is logged and left to the reaper. */
async function reapAtStart(
  reaper: Pick<Reaper, 'reap'>,
  log: Pick<Logger, 'info' | 'warn'>,
  signal: AbortSignal,
): Promise<void> {
  try {
    log.info(await reaper.reap(signal), 'removed what earlier rollouts left behind');
  } catch (error) {
    signal.throwIfAborted();
    log.warn(
      { error },
      'could not remove everything that earlier rollouts left behind; the reaper retries every minute. ' +
        'If it keeps failing, fix the cause that the error names, or remove the sandbox by hand',
    );
  }
}

/** Lets stages ask whether this host may still act as the one that it was when they began. */
function actingBy(lease: Pick<Lease, 'now' | 'valid'>): Pick<Host, 'acts' | 'mayAct'> {
  const acts = (held: string | null): boolean => {
    const { state, token } = lease.now();
    return state === 'valid' && token === held;
  };
  return {
    acts,
    async mayAct(held, signal) {
      await lease.valid(signal);
      if (!acts(held)) throw new TemperFailure('HostFenced', `this host no longer is ${held}, which was declared lost`);
    },
  };
}

/** Opens what this machine offers to rollouts. The caller closes its admission and its providers. */
export async function openHost(
  config: Config,
  { blobs, objects, stack, verdicts }: StackState,
  lease: Pick<Lease, 'now' | 'valid'>,
): Promise<Host> {
  const [key] = await openStackKeys(config, objects);
  const agents = createAgents({ cacheDir: config.cacheDir, own: await loadOwnAgents(config.agents) });
  const runtime = createRuntime({ cacheDir: config.cacheDir });
  const network = {
    cap: config.network,
    outside: createPublicNetwork(),
    places: createEgressPlaces(config.paths.egress),
    runtime: runtime.prepare,
  };
  const providers = await openProviders({
    stack,
    root: config.paths.sandboxes,
    docker: config.docker,
    e2b: config.e2b,
    kubernetes: config.kubernetes,
    images: config.paths.images,
    accounts: { directory: config.dockerConfigDir, env: config.env },
    buildProxy: createBuildProxies(network),
    preferred: config.sandbox,
    spawner: createHelperSpawner(),
  });
  const admission = createAdmission({
    need: needOf(usualTask, config.sandbox),
    readLevels: () => readLevels({ directories: rolloutDirectories(config) }),
  });
  const intake = createIntake();
  return {
    name: config.host,
    stack,
    fence: () => lease.now().token,
    ...actingBy(lease),
    sharesJournals: config.sharedJournals !== null,
    store: blobs,
    verdicts: createVerdictCache({ records: verdicts, store: blobs }),
    solvable: new Set(),
    admission,
    intake,
    slots: createSlots(config.capacity, { admission, intake }),
    // Half of the grace, so that a pass of retention sees the reference of a rollout that has just used one.
    results: createKeptResults(config.paths.results, blobGraceMs / 2),
    tasks: createTasks({
      store: blobs,
      roots: config.taskRoots,
      dataSets: { directory: config.cacheDir, offline: true },
      variables: config.taskVariables,
    }),
    providers,
    choose: providers.choose,
    hasImage: async (image) => hasImage(await providers.seen(), image),
    agent: agents.get,
    gatewaySockets: config.paths.gatewaySockets,
    channel: config.channel,
    network,
    holdMs: config.hostHoldMs,
    snapshotBytes: config.snapshotMb * 2 ** 20,
    secretOf: (session) => secretOf(key, session),
    pathOf: (kind) => (kind === 'local' ? localPath : null),
    evaluationMounts: async (kind) => (kind === 'local' ? [await runtime.prepare()] : []),
  };
}
