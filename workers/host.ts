import type { WorkerOptions } from '@temporalio/worker';
import type { Host } from '../activities/host/host.ts';
import { createLanes } from '../activities/host/lanes.ts';
import type { Reaper } from '../activities/host/reap.ts';
import { createTraceActivities } from '../activities/host/traces.ts';
import { createGatewayControl } from '../infra/gateway/client.ts';
import type { GatewayControl } from '../infra/gateway/control.ts';
import { requireSharedJournals } from '../infra/gateway/sessions/journal-directory.ts';
import { controlSockets } from '../infra/gateway/sockets.ts';
import type { HeldLease } from '../infra/hosts/lease.ts';
import { capacityWarning, rolloutsThatFit } from '../infra/machine/rollouts-that-fit.ts';
import type { Config } from '../infra/settings/config.ts';
import { resolvePolicy } from '../infra/temporal/runs.ts';
import { followsServer, requireNamespace } from '../infra/temporal/stack-namespace.ts';
import { adoptionWorkers } from './adoption-workers.ts';
import { checkClocks } from './check-clocks.ts';
import { claimName, keepHost, lockHost, openLease } from './claim-host.ts';
import { creationWorkers } from './creation-worker.ts';
import { hostQueues } from './host-queues.ts';
import { whileLeased } from './leased-worker.ts';
import { openHost } from './open-host.ts';
import { openState, type StackState } from './open-state.ts';
import { placeRollouts } from './place-rollouts.ts';
import { runWorkers, type WorkerProcess } from './process.ts';
import { reportAdmission } from './report-admission.ts';
import { reportFailing } from './report-failing.ts';
import { reportLanes } from './report-lanes.ts';
import { createLimitReport } from './report-limits.ts';
import { reportSandboxes } from './report-sandboxes.ts';
import { returnAttempts } from './return-attempts.ts';
import { startReaper } from './start-reaper.ts';

/** A host worker: what this machine offers to rollouts, and the process that offers it. */
interface HostWorker {
  readonly config: Config;
  readonly shared: StackState;
  readonly lease: HeldLease;
  readonly host: Host;
  readonly gateway: GatewayControl;
  readonly process: WorkerProcess;
}

/** Runs the host worker until the signal or the loss of the host ends it. Throws TemperFailure if its home has another one. */
export async function runHost(config: Config, signal: AbortSignal): Promise<void> {
  const lock = await lockHost(config);
  try {
    await runLocked(config, signal);
  } finally {
    await lock.release();
  }
}

async function runLocked(config: Config, signal: AbortSignal): Promise<void> {
  const shared = await openState(config);
  await requireSharedJournals(config.sharedJournals, config.paths.journals);
  const lease = openLease(config, shared);
  const limits = createLimitReport();
  const gateway = createGatewayControl(controlSockets(config.paths.gatewaySockets, config.gateways));
  const host = await openHost(config, shared, lease, { gateway, limits });
  const ending = new AbortController();
  const ended = AbortSignal.any([signal, ending.signal]);
  let kept: Promise<void> = Promise.resolve();
  try {
    const noteExpiry = (text: string | null) => shared.hostNotes.set(host.name, 'certificate', text);
    await runWorkers({ config, part: 'host', noteExpiry }, ended, async (process) => {
      limits.logTo(process.log);
      const worker = { config, shared, lease, host, gateway, process };
      const { client, log } = process;
      await requireNamespace({ ...shared, client }, { mayMove: followsServer(config.store) });
      const named = { config, host, hosts: shared.hosts, lease, log };
      await claimName(named, ended);
      kept = keepHost(named, ended);
      kept.catch((error: unknown) => ending.abort(error));
      void refusalByClocks(worker, ended).then((refusal) => refusal === null || ending.abort(new Error(refusal)));
      await reportObstacles(worker);
      const reaper = await startReaper({ host, client, log }, ended);
      return takeWork(worker, reaper, ended);
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

/** Returns the reason to refuse this host because of its clock. Clocks that cannot be compared are logged, and are no reason. */
async function refusalByClocks(
  { host, shared, process: { client, log } }: HostWorker,
  signal: AbortSignal,
): Promise<string | null> {
  try {
    return await checkClocks({ client, host: host.name, state: shared, log }, signal);
  } catch (error) {
    log.warn({ error }, 'could not compare the clocks of host, store and Temporal server');
    return null;
  }
}

/** Reports what keeps this host from rollouts: now in the log, and its admission for as long as it runs. */
async function reportObstacles({ config, shared, host, process: { log } }: HostWorker): Promise<void> {
  const reporting = { host: host.name, notes: shared.hostNotes, log };
  reportAdmission(host.admission, reporting);
  reportFailing(host.failing, reporting);
  const warning = capacityWarning(config.capacity, rolloutsThatFit(config));
  if (warning !== null) log.warn(warning);
  await reportSandboxes(host, { preferred: config.sandbox, log });
}

/** Begins to take rollouts, and returns the workers of all queues of the host. */
function takeWork(worker: HostWorker, reaper: Reaper, signal: AbortSignal): WorkerOptions[] {
  const { config, shared, lease, host, gateway, process } = worker;
  const { client, log } = process;
  const lanes = createLanes({ stages: config.lanes, evaluations: config.evaluations });
  reportLanes(lanes, { host: host.name, records: shared.lanes, log }, signal);
  const sessions = createTraceActivities(gateway, (policy) => resolvePolicy(client, policy));
  const placing = placeRollouts({ config, host, shared, process }, signal);
  void returnAttempts({ client, host: host.name, log }, signal);
  const adopting = config.sharedJournals === null ? [] : adoptionWorkers(host, gateway);
  return [
    ...creationWorkers(config.createsPerSecond),
    ...adopting.map((one) => whileLeased(lease, one)),
    ...hostQueues(host, { capacity: config.capacity, sessions, lanes, placing, reaper, lease }),
  ];
}
