import { setTimeout as sleep } from 'node:timers/promises';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { HostFacts, HostRecord, Hosts } from '../store/hosts.ts';
import { untilWritten } from '../store/until-written.ts';
import { bootClock } from './boot-clock.ts';
import type { HeldLease } from './lease.ts';

export interface Claim {
  readonly host: string;
  readonly machine: string;
  readonly lease: Pick<HeldLease, 'record' | 'wrote' | 'claim'>;
  readonly leaseMs: number;
  /** The time for which another machine's record has to stay as it is before this machine takes the name over. */
  readonly watchMs: number;
  readonly facts: HostFacts;
  /** Called once if the name belongs to another machine, which may be gone. */
  readonly onWatch: (record: HostRecord) => void;
}

/**
 * Claims a host's name for this machine, and begins its lease. A new name begins with generation 1, and the machine that holds
 * a name keeps its generation; a host that was declared lost, or whose machine shows no sign of life for the whole time, gets
 * the next one. A home whose record was renewed by a copy of it is another machine. Throws TemperFailure InvalidInput if
 * another machine uses the name.
 */
export function claimHost(hosts: Hosts, claim: Claim, signal: AbortSignal): Promise<HostRecord> {
  return untilWritten(`the record of host ${claim.host}`, async () => {
    const found = await hosts.find(claim.host);
    const holds = found !== null && (await isHeldBy(claim, found.record));
    if (found !== null && !holds && found.record.lost === null) await watch(hosts, claim, found.record, signal);
    const record = recordOf(claim, found?.record ?? null, holds);
    return (await claim.lease.claim(record, found, signal)) ?? undefined;
  });
}

/** Whether this home holds the name of a record: the record has its id, and its last renewal is not that of a copy. */
export const isHeldBy = async (
  { machine, lease }: Pick<Claim, 'machine'> & { readonly lease: Pick<HeldLease, 'wrote'> },
  record: HostRecord,
): Promise<boolean> => record.machine === machine && (await lease.wrote(record));

function recordOf(
  { machine, lease, leaseMs, facts }: Claim,
  before: HostRecord | null,
  holds: boolean,
): Omit<HostRecord, 'renewal'> {
  // An operator may have removed the record of a host by hand.
  const next = before === null ? (lease.record?.generation ?? 1) : before.generation + 1;
  return {
    ...facts,
    generation: before !== null && holds && before.lost === null ? before.generation : next,
    machine,
    leaseMs,
    // Draining is an order about a machine, so another one of the name begins without it.
    draining: before !== null && holds ? before.draining : null,
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
    if (now.renewedAt !== record.renewedAt || now.machine !== record.machine) throw usedTwice(claim, now);
  }
}

/** The sentence for an operator whose machine waits for a name, and how the wait is ended. */
export const watchText = (host: string, watchMs: number): string =>
  `the host name ${host} belongs to another machine, or to another copy of this home; this one takes it over if that one ` +
  `shows no sign of life for ${watchMs / 1000} s. \`temper host forget ${host}\` ends the wait`;

function usedTwice({ host, machine: own }: Claim, { machine, renewedAt }: HostRecord): TemperFailure {
  const other = machine === own ? 'a machine with a copy of this home' : `another machine (${machine})`;
  return new TemperFailure(
    'InvalidInput',
    `host name used twice: ${host} belongs to ${other}, which renewed its record at ${renewedAt}; ` +
      `choose another TEMPER_HOST, or stop that machine and run \`temper host forget ${host}\``,
  );
}
