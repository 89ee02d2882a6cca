import type { ListedObject } from '../store/objects.ts';
import { type Entry, hourMs, type RetentionContext } from './category.ts';

/** Makes an entry of shared objects that are removed together, unless they are used meanwhile. */
export function objectEntry(
  { objects, nowMs }: Pick<RetentionContext, 'objects' | 'nowMs'>,
  found: readonly ListedObject[],
  { name, expired }: Pick<Entry, 'name' | 'expired'>,
): Entry {
  const keys = found.map(({ key }) => key);
  return {
    name,
    keys,
    expired,
    path: `${objects.location}/${keys[0] ?? ''}`,
    bytes: found.reduce((sum, { size }) => sum + size, 0),
    async remove() {
      let freed = 0;
      // An hour, because the clocks of hosts and of the store differ.
      for (const { key, size } of found) if (await objects.remove(key, nowMs - hourMs)) freed += size;
      return freed;
    },
  };
}

/** Returns the last part of a key. */
export const nameOf = (key: string): string => key.slice(key.lastIndexOf('/') + 1);

/** Yields the objects of each folder one level below `folder`, with its name. */
export async function* byFolder(
  found: AsyncIterable<ListedObject>,
  folder: string,
): AsyncIterable<readonly [string, readonly ListedObject[]]> {
  let group: ListedObject[] = [];
  let current = '';
  for await (const one of found) {
    const [name = '', ...rest] = one.key.slice(folder.length + 1).split('/');
    if (rest.length === 0) continue;
    if (name !== current && group.length > 0) {
      yield [current, group];
      group = [];
    }
    current = name;
    group.push(one);
  }
  if (group.length > 0) yield [current, group];
}

export const lastChangeOf = (found: readonly ListedObject[]): number =>
  found.reduce((last, { changedAtMs }) => Math.max(last, changedAtMs), 0);
