import type { Category } from '../../../../infra/retention/category.ts';
import { categories } from '../../../../infra/retention/table.ts';
import { sizeOf } from '../../../../infra/retention/trees.ts';
import type { Objects } from '../../../../infra/store/objects.ts';
import { openObjects } from '../../../../infra/store/shared-state.ts';
import { retentionPaths } from '../../../retention.ts';
import { bytes } from '../../text/output.ts';
import { ok, type RunChecks } from './checks.ts';

/** The time to measure all categories; a store of millions of files takes longer. */
const limitMs = 10_000;

/** Measures what the stack keeps, by category of retention. */
export const checkSizes: RunChecks = async function* (config) {
  const limit = AbortSignal.timeout(limitMs);
  const objects = await openObjects(config.store);
  const measure = async ({ name, where, folder }: Category): Promise<readonly [string, number | null]> => {
    const size = await unlessLate(limit, async () => {
      let total = folder === undefined ? 0 : await sizeOfFolder(objects, folder, limit);
      for (const path of where(retentionPaths(config))) total += await sizeOf(path, limit);
      return total;
    });
    return [name, size];
  };
  // All at once: one that takes too long, such as a cache of many packages, hides no other.
  const sizes = Object.fromEntries(await Promise.all(categories.map(measure)));
  yield { ...ok('kept', describeSizes(sizes)), figures: sizes };
};

/** The sizes as a text; null stands for one that took too long. */
export function describeSizes(sizes: Readonly<Record<string, number | null>>): string {
  const found = Object.entries(sizes).filter(([, size]) => size !== 0);
  const measured = found.flatMap(([name, size]) => (size === null ? [] : [`${name} ${bytes(size)}`]));
  const late = found.flatMap(([name, size]) => (size === null ? [name] : []));
  const unknown = late.length === 0 ? [] : [`not measured within ${limitMs / 1000} s: ${late.join(', ')}`];
  return [...(measured.length === 0 ? [] : [measured.join(', ')]), ...unknown].join('; ') || 'nothing yet';
}

async function sizeOfFolder(objects: Objects, folder: string, limit: AbortSignal): Promise<number> {
  let total = 0;
  for await (const { size } of objects.list(folder)) {
    limit.throwIfAborted();
    total += size;
  }
  return total;
}

/** Measures something; null if it takes too long. */
async function unlessLate(limit: AbortSignal, measure: () => Promise<number>): Promise<number | null> {
  try {
    return await measure();
  } catch (error) {
    if (limit.aborted) return null;
    throw error;
  }
}
