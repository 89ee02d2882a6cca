import { z } from 'zod';
import type { Records } from './records.ts';

const name = 'lanes';
const lane = z.object({ most: z.int(), width: z.int(), running: z.int() });
const lanes = z.record(z.string(), lane);

/** The lanes of a host by name, as its worker saw them last. */
export type LaneStates = z.output<typeof lanes>;

/** The states of the lanes of hosts, which a host worker writes for `temper status`. */
export interface LaneRecords {
  write(host: string, states: LaneStates): Promise<void>;
  /** Reads the states; null if the host has written none. */
  find(host: string): Promise<LaneStates | null>;
}

export function createLaneRecords(records: Records): LaneRecords {
  return {
    write: (host, states) => records.write(host, name, states),
    find: async (host) => lanes.safeParse(await records.find(host, name)).data ?? null,
  };
}
