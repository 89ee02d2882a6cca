import { z } from 'zod';
import { sandboxKinds } from '../../workflows/contracts/sandbox-kinds.ts';
import type { Objects } from './objects.ts';
import { untilWritten } from './until-written.ts';

const decision = z.object({ since: z.iso.datetime(), reason: z.string() });
/** Something that was decided about a host: since when, and why. */
export type HostDecision = Readonly<z.output<typeof decision>>;

export const hostRecord = z.object({
  /** Counts the lives of the host's name. What an earlier generation holds is void. */
  generation: z.int().min(1),
  /** The random id of the machine's home that holds the name. */
  machine: z.string(),
  /** The random id of the last renewal, by which the home tells its own from that of a copy of it. */
  renewal: z.string(),
  /** The version of temper. */
  version: z.string(),
  capacity: z.int(),
  /** The slots that were taken at the last renewal. */
  taken: z.int(),
  /** The slots among them that runs and sweeps held, by the ends of their keys; absent if they held none. */
  heldBy: z.exactOptional(z.record(z.string(), z.int())),
  /** The kinds of sandboxes that the host offers. */
  sandboxes: z.array(z.enum(sandboxKinds)).readonly(),
  /** The time after a renewal for which the host may act. */
  leaseMs: z.int().min(1),
  draining: decision.nullable(),
  /** The time of the last renewal by the host's own clock. For people: temper compares no clocks. */
  renewedAt: z.iso.datetime(),
  lost: decision.nullable(),
});

/** The state of a host, as all processes of the stack see it. It is changed by compare-and-set alone. */
export type HostRecord = Readonly<z.output<typeof hostRecord>>;

/** The state of a host by its own account. */
export type HostFacts = Pick<HostRecord, 'version' | 'capacity' | 'taken' | 'heldBy' | 'sandboxes'>;

export interface FoundHost {
  readonly record: HostRecord;
  /** The version of the object that holds the record. */
  readonly version: string;
}

/** The records of a stack's hosts. Throws TemperFailure StoreUnavailable or DiskFull. */
export interface Hosts {
  /** Lists the names of all hosts that have a record. */
  names(): Promise<readonly string[]>;
  find(host: string): Promise<FoundHost | null>;
  /** Replaces a record that still has that version; null: one that does not exist. Returns the new version, or null. */
  replace(host: string, record: HostRecord, version: string | null): Promise<string | null>;
  /**
   * Replaces a record by what `change` makes of it, and calls it again if another process came first. Returns the record as it is
   * then; it stays as it is if `change` returns it.
   */
  update(host: string, change: (record: HostRecord | null) => HostRecord | null): Promise<HostRecord | null>;
  /** Measures how far the store's clock was ahead of the host's when it renewed its record; null if there is none. */
  skewMs(host: string): Promise<number | null>;
}

const folder = 'hosts';
/** The name of the record beside the notes and lanes of the host. */
const fileName = 'host.json';

export function createHosts(objects: Objects): Hosts {
  const keyOf = (host: string): string => `${folder}/${host}/${fileName}`;

  async function find(host: string): Promise<FoundHost | null> {
    const found = await objects.get(keyOf(host));
    if (found === null) return null;
    return { record: hostRecord.parse(JSON.parse(new TextDecoder().decode(found.bytes))), version: found.version };
  }

  const replace: Hosts['replace'] = (host, record, version) =>
    objects.replace(keyOf(host), new TextEncoder().encode(JSON.stringify(record)), version);

  return {
    async names() {
      const names: string[] = [];
      for await (const { key } of objects.list(folder)) {
        const [, host, name] = key.split('/');
        if (host !== undefined && name === fileName) names.push(host);
      }
      return names.toSorted();
    },
    find,
    replace,
    update: (host, change) =>
      untilWritten(`the record of host ${host}`, async () => {
        const found = await find(host);
        const before = found?.record ?? null;
        const after = change(before);
        if (after === null || after === before) return after;
        return (await replace(host, after, found?.version ?? null)) === null ? undefined : after;
      }),
    async skewMs(host) {
      const facts = await objects.stat(keyOf(host));
      const found = await find(host);
      return facts === null || found === null ? null : facts.changedAtMs - Date.parse(found.record.renewedAt);
    },
  };
}
