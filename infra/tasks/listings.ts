import { stat } from 'node:fs/promises';
import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { TaskAddress, TaskSetAddress } from '../../workflows/contracts/task.ts';
import type { DataSetOpener } from '../data-sets/data-set-opener.ts';
import type { Store } from '../store/store.ts';
import { parseSetAddress, resolveBelow, type SetAddress, taskDirectories } from './addresses.ts';
import { createRecent } from './recent.ts';

export interface ListingsDependencies {
  readonly store: Store;
  readonly roots: readonly string[];
  readonly dataSets: DataSetOpener;
}

export interface Listings {
  /** All tasks of a set that ends, in its order: the same array as long as the set is the same. */
  list(set: TaskSetAddress): Promise<readonly TaskAddress[]>;
}

/** What a set is listed from. What it was listed from an equal version of is not listed again. */
interface Source {
  readonly version: unknown;
  read(): readonly TaskAddress[] | Promise<readonly TaskAddress[]>;
}

const mostSets = 8;
/** A directory that was changed just now may be about to be changed again, without another time of its change. */
const settledMs = 5000;
const addressList = z.array(z.string()).min(1);

export function createListings({ store, roots, dataSets }: ListingsDependencies): Listings {
  const listed = createRecent<{ readonly version: unknown; readonly addresses: Promise<readonly TaskAddress[]> }>(
    mostSets,
  );

  async function sourceOf(set: TaskSetAddress): Promise<Source> {
    const parsed = parseSetAddress(set);
    switch (parsed.kind) {
      case 'harbor': {
        const directory = await resolveBelow(roots, parsed.directory);
        const read = async () => (await taskDirectories(directory)).map((path) => `harbor:${path}`);
        return { version: await versionOf(directory), read };
      }
      case 'blob':
        return { version: set, read: async () => listOf(parsed.digest, await store.getJson(parsed.digest)) };
      case 'data-set': {
        if (parsed.task !== null) return { version: set, read: () => [set] };
        const ids = await (await dataSets.open(parsed)).ids();
        return { version: ids, read: () => ids.map((id) => `${set}#${id}`) };
      }
      case 'generated': {
        const { count } = parsed;
        if (count === null) {
          throw new TemperFailure('UnknownTask', `${set}: expected a set that ends, for example ${set}?count=64`);
        }
        return { version: set, read: () => Array.from({ length: count }, (_, index) => generated(parsed, index)) };
      }
    }
  }

  return {
    async list(set) {
      const { version, read } = await sourceOf(set);
      const known = listed.get(set);
      if (known !== undefined && known.version === version) return known.addresses;
      const addresses = Promise.resolve(read());
      listed.set(set, { version, addresses });
      addresses.catch(() => listed.delete(set));
      return addresses;
    },
  };
}

async function versionOf(directory: string): Promise<unknown> {
  const { mtimeMs } = await stat(directory);
  return Date.now() - mtimeMs > settledMs ? mtimeMs : Symbol('unsettled');
}

export const generated = (
  { split, seed }: Pick<Extract<SetAddress, { kind: 'generated' }>, 'split' | 'seed'>,
  index: number,
): TaskAddress => `generated:${split}/${seed}/${index}`;

function listOf(digest: string, value: unknown): readonly TaskAddress[] {
  const parsed = addressList.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new TemperFailure('UnknownTask', `blob:${digest}: expected a JSON list of task addresses, got something else`);
}
