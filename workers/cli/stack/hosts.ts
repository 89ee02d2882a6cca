import type { HostNote } from '../../../infra/store/host-notes.ts';
import type { HostDecision, HostRecord } from '../../../infra/store/hosts.ts';
import type { SharedState } from '../../../infra/store/shared-state.ts';
import { UsageError } from '../text/errors.ts';
import { ago, table } from '../text/output.ts';

/** One host of the stack. */
export interface HostRow {
  readonly name: string;
  /** `silent`: its lease is over, so that it does not act; it may come back. */
  readonly state: 'working' | 'draining' | 'silent' | 'lost';
  readonly capacity: number;
  readonly taken: number;
  readonly sandboxes: readonly string[];
  readonly version: string;
  readonly generation: number;
  /** The time of its last sign of life, by its own clock. */
  readonly renewedAt: string;
  readonly draining: HostDecision | null;
  readonly lost: HostDecision | null;
  /** The sentences of the host for its operator, by subject. */
  readonly notes: Readonly<Record<string, HostNote>>;
}

/** Reads the hosts of the stack, in the order of their names. */
export async function hostRows({ hosts, hostNotes: notesOf }: SharedState): Promise<readonly HostRow[]> {
  const rows = (await hosts.names()).map(async (name): Promise<readonly HostRow[]> => {
    const [found, notes] = await Promise.all([hosts.find(name), notesOf.list(name)]);
    if (found === null) return [];
    const { machine: _machine, leaseMs, ...record } = found.record;
    const silent = Date.now() - Date.parse(record.renewedAt) > leaseMs;
    return [{ name, state: stateOf(record, silent), ...record, notes }];
  });
  return (await Promise.all(rows)).flat();
}

function stateOf({ lost, draining }: Pick<HostRow, 'lost' | 'draining'>, silent: boolean): HostRow['state'] {
  if (lost !== null) return 'lost';
  if (silent) return 'silent';
  return draining === null ? 'working' : 'draining';
}

export function hostTable(rows: readonly HostRow[]): string {
  return table(
    ['host', 'state', 'taken', 'of', 'sandboxes', 'version', 'last sign of life'],
    rows.map(({ name, state, taken, capacity, sandboxes, version, renewedAt }) => [
      name,
      state,
      // Its last record still has the slots of the rollouts that have moved on since.
      state === 'lost' ? '-' : String(taken),
      String(capacity),
      sandboxes.join(', ') || '-',
      version,
      ago(renewedAt),
    ]),
  );
}

/** Formats what is to be said about the hosts, one line each. */
export function hostNotes(rows: readonly HostRow[]): string {
  const lines = rows.flatMap(({ name, draining, lost, notes }) => [
    ...(lost === null ? [] : [`host ${name} was declared lost: ${lost.reason} (since ${lost.since})`]),
    ...(draining === null ? [] : [`host ${name} is drained: ${draining.reason} (since ${draining.since})`]),
    ...Object.values(notes).map(({ text, since }) => `host ${name}: ${text} (since ${since})`),
  ]);
  return lines.map((line) => `${line}\n`).join('');
}

/** Returns the record of a host that takes orders. Throws an Error if it was declared lost. */
export function livingHost(name: string, found: HostRecord | null): HostRecord {
  const record = knownHost(name, found);
  if (record.lost === null) return record;
  const { reason, since } = record.lost;
  throw new Error(
    `${name} was declared lost: ${reason} (since ${since}); it does nothing until its processes are started again, and then begins afresh`,
  );
}

/** Returns the record of a host that the user named. Throws a UsageError if there is none. */
export function knownHost(name: string, record: HostRecord | null): HostRecord {
  if (record !== null) return record;
  throw new UsageError(`expected the name of a host of this stack, got ${name}; \`temper host list\` shows them`);
}
