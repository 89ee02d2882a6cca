import type { Logger } from 'pino';
import type { Host } from '../activities/host/host.ts';
import { claimHost, watchText } from '../infra/hosts/claim.ts';
import { createLease, type HeldLease } from '../infra/hosts/lease.ts';
import { leaseMsOf } from '../infra/hosts/lease-times.ts';
import { readMachineId } from '../infra/hosts/machine.ts';
import { packageVersion } from '../infra/package-version.ts';
import { type FileLock, tryLock } from '../infra/process/file-lock.ts';
import type { Config } from '../infra/settings/config.ts';
import { storeFailure } from '../infra/store/files.ts';
import type { HostFacts } from '../infra/store/hosts.ts';
import type { SharedState } from '../infra/store/shared-state.ts';
import { TemperFailure } from '../workflows/contracts/failures.ts';
import { keepLease } from './keep-lease.ts';

/**
 * Makes this process the only host worker of its home: two would share one lease, and take twice the capacity. The lock of a
 * process that was killed does not count. Throws TemperFailure InvalidInput if another process has the lock, DiskFull or
 * StoreUnavailable if the home cannot be written.
 */
export async function lockHost({ home, host, paths }: Config): Promise<FileLock> {
  const lock = await tryLock(paths.hostLock).catch((error: unknown) => {
    throw storeFailure(paths.hostLock, error);
  });
  if (!('holder' in lock)) return lock;
  const { pid } = lock.holder;
  throw new TemperFailure(
    'InvalidInput',
    `a host worker already runs on ${home}: ${pid === null ? 'another process' : `process ${pid}`}; ` +
      `a home has one host, so stop that process before you start this one (host ${host}), or name another TEMPER_HOME ` +
      'and TEMPER_HOST',
  );
}

/** The interval at which the host worker looks whether its host may act. */
const lookMs = 1_000;

/** Opens the lease of the host on this home. */
export const openLease = ({ host, paths, store }: Config, { hosts }: SharedState): HeldLease =>
  createLease({ path: paths.lease, host, hosts, storeIsLocal: store.kind === 'directory' });

interface HostContext {
  readonly config: Config;
  readonly host: Host;
  readonly hosts: SharedState['hosts'];
  readonly lease: HeldLease;
  readonly log: Logger;
}

/** Claims the host's name, and begins its lease. Throws if another machine uses the name. */
export async function claimName({ config, host, hosts, lease, log }: HostContext, signal: AbortSignal): Promise<void> {
  const { hostLostAfterMs: watchMs } = config;
  const { generation } = await claimHost(
    hosts,
    {
      host: host.name,
      machine: await readMachineId(config.paths.machine),
      lease,
      leaseMs: leaseMsOf(watchMs),
      watchMs,
      facts: (await readFacts(host))(),
      onWatch: ({ machine, renewedAt }) => log.warn({ machine, renewedAt }, watchText(host.name, watchMs)),
    },
    signal,
  );
  log.info({ host: host.name, generation }, 'claimed the name of this host');
}

/**
 * Renews the lease until the signal aborts, and opens and closes the intake as the record says. Rejects once the host was
 * declared lost: the process must end, and the next one starts afresh.
 */
export async function keepHost({ config, host, lease, log }: HostContext, signal: AbortSignal): Promise<void> {
  const lost = new AbortController();
  const lookNow = (): void => {
    const { state, token } = lease.now();
    if (state === 'fenced') {
      lost.abort(
        new TemperFailure('HostFenced', `host ${token} was declared lost; it starts again as a new generation`),
      );
    }
    const draining = lease.record?.draining ?? null;
    if (draining !== null) host.intake.close(`drained: ${draining.reason}`);
    else if (state !== 'valid') host.intake.close('its lease ran out: its record in the store cannot be renewed');
    else if (host.failing.reason !== null) host.intake.close(host.failing.reason);
    else host.intake.open();
  };
  // A lease that cannot be read ends the worker in order, as any other failure does.
  const look = (): void => {
    try {
      lookNow();
    } catch (error) {
      lost.abort(error);
    }
  };
  look();
  host.intake.onChange(() => {
    if (host.intake.closedBy === null) log.info('takes new work');
    else log.warn(`takes no new work: ${host.intake.closedBy}`);
  });
  const facts = await readFacts(host);
  const leaseMs = leaseMsOf(config.hostLostAfterMs);
  // While the store is away a renewal takes its time, in which the lease may run out.
  const looking = setInterval(look, lookMs);
  try {
    await keepLease({ lease, leaseMs, stepsIn: false, facts, log }, AbortSignal.any([signal, lost.signal]));
  } finally {
    clearInterval(looking);
  }
  lost.signal.throwIfAborted();
}

/** Returns what the host says about itself at any time. */
async function readFacts(host: Host): Promise<() => HostFacts> {
  const sandboxes = [...(await host.providers.seen()).keys()];
  const version = packageVersion();
  return () => {
    const { capacity, taken, heldBy } = host.slots;
    return { version, capacity, taken, ...(Object.keys(heldBy).length > 0 && { heldBy }), sandboxes };
  };
}
