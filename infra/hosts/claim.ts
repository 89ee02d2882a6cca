import { setTimeout as sleep } from 'node:timers/promises';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { FoundHost, HostRecord, Hosts } from '../store/hosts.ts';
import { untilWritten } from '../store/until-written.ts';
import { bootClock } from './boot-clock.ts';

/** The state of a host by its own account. */
export type HostFacts = Pick<HostRecord, 'version' | 'capacity' | 'taken' | 'sandboxes'>;

export interface Claim {
  readonly host: string;
  readonly machine: string;
  /** The generation that this home held last under that name; null if it held none. */
  readonly held: number | null;
  readonly leaseMs: number;
  /** The time for which another machine's record has to stay as it is before this machine takes the name over. */
  readonly watchMs: number;
  readonly facts: HostFacts;
  /** Called once if the name belongs to another machine, which may be gone. */
  readonly onWatch: (record: HostRecord) => void;
}

/** A claim that succeeded. */
export interface Claimed extends FoundHost {
  /** The time by the boot clock before which the record was not written yet. */
  readonly beganMs: number;
}

/**
 * Claims a host's name for this machine. A new name begins with generation 1, and the machine that holds a name keeps its
 * generation; a host that was declared lost, or whose machine shows no sign of life for the whole time, gets the next one.
 * Throws TemperFailure InvalidInput if another machine uses the name.
 */
export function claimHost(hosts: Hosts, claim: Claim, signal: AbortSignal): Promise<Claimed> {
  return untilWritten(`the record of host ${claim.host}`, async () => {
    const found = await hosts.find(claim.host);
    const before = found?.record ?? null;
    if (before !== null && before.machine !== claim.machine && before.lost === null) {
      await watch(hosts, claim, before, signal);
    }
    const beganMs = bootClock.nowMs();
    const record = recordOf(claim, before);
    const version = await hosts.replace(claim.host, record, found?.version ?? null);
    return version === null ? undefined : { record, version, beganMs };
  });
}

function recordOf({ machine, held, leaseMs, facts }: Claim, before: HostRecord | null): HostRecord {
  const same = before?.machine === machine;
  const generation = before === null ? (held ?? 1) : before.generation + (same && before.lost === null ? 0 : 1);
  return {
    ...facts,
    generation,
    machine,
    leaseMs,
    // Draining is an order about a machine, so another one of the name begins without it.
    draining: same ? before.draining : null,
    renewedAt: new Date().toISOString(),
    lost: null,
  };
}

/** Waits until another machine has not renewed its record for long enough. Throws as soon as it does. */
async function watch(hosts: Hosts, claim: Claim, record: HostRecord, signal: AbortSignal): Promise<void> {
  const watchMs = Math.max(claim.watchMs, 2 * record.leaseMs);
  claim.onWatch(record);
  const endMs = bootClock.nowMs() + watchMs;
  while (bootClock.nowMs() < endMs) {
    await sleep(watchMs / 60, undefined, { signal });
    const now = (await hosts.find(claim.host))?.record;
    if (now === undefined || now.lost !== null) return;
    if (now.renewedAt !== record.renewedAt || now.machine !== record.machine) throw usedTwice(claim.host, now);
  }
}

/** The sentence for an operator whose machine waits for a name, and how the wait is ended. */
export const watchText = (host: string, watchMs: number): string =>
  `the host name ${host} belongs to another machine; this one takes it over if that one shows no sign of life for ` +
  `${watchMs / 1000} s. \`temper host forget ${host}\` ends the wait`;

function usedTwice(host: string, { machine, renewedAt }: HostRecord): TemperFailure {
  return new TemperFailure(
    'InvalidInput',
    `host name used twice: ${host} belongs to another machine (${machine}), which renewed its record at ${renewedAt}; ` +
      `choose another TEMPER_HOST, or stop that machine and run \`temper host forget ${host}\``,
  );
}
