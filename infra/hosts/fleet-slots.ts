import type { Hosts } from '../store/hosts.ts';

interface OwnSlots {
  readonly name: string;
  readonly capacity: number;
}

/**
 * Returns how many slots the hosts before this one have, in the order of their names, and how many all have together. A host
 * that is drained or lost has none. This host's own slots count, whatever its record says.
 */
export async function readFleetSlots(
  hosts: Pick<Hosts, 'names' | 'find'>,
  own: OwnSlots,
): Promise<{ readonly before: number; readonly all: number }> {
  let before = 0;
  let all = own.capacity;
  for (const name of await hosts.names()) {
    if (name === own.name) continue;
    const record = (await hosts.find(name))?.record;
    if (record === undefined || record.lost !== null || record.draining !== null) continue;
    all += record.capacity;
    if (name < own.name) before += record.capacity;
  }
  return { before, all };
}
