import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { TaskAddress, TaskSetAddress } from '../../workflows/contracts/task.ts';
import type { DataSetOpener } from '../data-sets/data-set-opener.ts';
import type { Store } from '../store/store.ts';
import { generatedAddress, harborAddress, parseSetAddress } from './address.ts';
import { createTaskDirectories, resolveTaskDirectory } from './task-directories.ts';

export interface TaskListerDependencies {
  readonly store: Store;
  readonly roots: readonly string[];
  readonly dataSets: DataSetOpener;
}

export interface TaskLister {
  /** Lists all tasks of a finite set, in its order. Returns the same array until the set changes. */
  list(set: TaskSetAddress): Promise<readonly TaskAddress[]>;
}

/** A way to list a set. The list is cached until `version` changes. */
interface Listing {
  readonly version: unknown;
  read(): readonly TaskAddress[] | Promise<readonly TaskAddress[]>;
}

interface CachedList {
  readonly version: unknown;
  readonly addresses: Promise<readonly TaskAddress[]>;
}

const maxCachedSets = 8;
const addressList = z.array(z.string()).min(1);

export function createTaskLister({ store, roots, dataSets }: TaskListerDependencies): TaskLister {
  const cache = new LRUCache<string, CachedList>({ max: maxCachedSets });
  const directories = createTaskDirectories();

  async function openListing(set: TaskSetAddress): Promise<Listing> {
    const parsed = parseSetAddress(set);
    switch (parsed.kind) {
      case 'harbor': {
        const directory = await resolveTaskDirectory(roots, parsed.directory);
        const { user } = parsed;
        const found = await directories.of(directory);
        return { version: found, read: () => found.map((path) => harborAddress({ directory: path, user })) };
      }
      case 'blob':
        if (parsed.task !== null) return { version: set, read: () => [set] };
        return { version: set, read: async () => parseList(parsed.digest, await store.getJson(parsed.digest)) };
      case 'data-set': {
        if (parsed.task !== null) return { version: set, read: () => [set] };
        const ids = await (await dataSets.open(parsed)).ids();
        return { version: ids, read: () => ids.map((id) => `${set}#${id}`) };
      }
      case 'generated': {
        const { count } = parsed;
        if (count === null) {
          throw new TemperFailure('UnknownTask', `${set}: expected a finite set, for example ${set}?count=64`);
        }
        const read = () => Array.from({ length: count }, (_, index) => generatedAddress(parsed, index));
        return { version: set, read };
      }
    }
  }

  return {
    async list(set) {
      const { version, read } = await openListing(set);
      const known = cache.get(set);
      if (known !== undefined && known.version === version) return known.addresses;
      const addresses = Promise.resolve(read());
      cache.set(set, { version, addresses });
      addresses.catch(() => cache.delete(set));
      return addresses;
    },
  };
}

function parseList(digest: string, value: unknown): readonly TaskAddress[] {
  const parsed = addressList.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new TemperFailure('UnknownTask', `blob:${digest}: expected a JSON list of task addresses, got something else`);
}
