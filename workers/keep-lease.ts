import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { HeldLease } from '../infra/hosts/lease.ts';
import { renewMsOf } from '../infra/hosts/lease-times.ts';
import type { HostFacts } from '../infra/store/hosts.ts';

/** The number of times that a process looks at the lease before it renews it. */
const looks = 4;

export interface KeepLease {
  readonly lease: HeldLease;
  readonly leaseMs: number;
  /** Whether this process renews only what its host's other processes have left too long. */
  readonly stepsIn: boolean;
  readonly facts?: () => HostFacts;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** Renews the lease until the signal aborts. A store that is away is logged once, and tried again. */
export async function keepLease(options: KeepLease, signal: AbortSignal): Promise<void> {
  const { lease, leaseMs, stepsIn, facts, log } = options;
  const renewMs = renewMsOf(leaseMs);
  const afterMs = stepsIn ? renewMs * (1 + 1 / looks) : renewMs;
  let failing = false;
  while (!signal.aborted) {
    try {
      await lease.renew(afterMs, facts?.());
      if (failing) log.info('the lease of this host is renewed again');
      failing = false;
    } catch (error) {
      if (!failing) log.warn({ error }, 'cannot renew the lease of this host; it stops acting when the lease runs out');
      failing = true;
    }
    await sleep(renewMs / looks, undefined, { signal }).catch(() => undefined);
  }
}
