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
  const found: string[] = [];
  const sizes: Record<string, number | null> = {};
  const objects = await openObjects(config.store);
  for (const { name, where, folder } of categories) {
    const size = await unlessLate(limit, async () => {
      let total = folder === undefined ? 0 : await sizeOfFolder(objects, folder, limit);
      for (const path of where(retentionPaths(config))) total += await sizeOf(path, limit);
      return total;
    });
    sizes[name] = size;
    if (size !== 0) found.push(`${name} ${size === null ? `more than ${limitMs / 1000} s can measure` : bytes(size)}`);
  }
  yield { ...ok('kept', found.length === 0 ? 'nothing yet' : found.join(', ')), figures: sizes };
};

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
