import { categories } from '../../../../infra/retention/table.ts';
import { sizeOf } from '../../../../infra/retention/trees.ts';
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
  for (const { name, where } of categories) {
    const size = await sizeOfAll(where(retentionPaths(config)), limit);
    sizes[name] = size;
    if (size !== 0) found.push(`${name} ${size === null ? `more than ${limitMs / 1000} s can measure` : bytes(size)}`);
  }
  yield { ...ok('kept', found.length === 0 ? 'nothing yet' : found.join(', ')), figures: sizes };
};

/** Returns the disk space of some files and directories; null if it takes too long to measure. */
async function sizeOfAll(paths: readonly string[], limit: AbortSignal): Promise<number | null> {
  try {
    let total = 0;
    for (const path of paths) total += await sizeOf(path, limit);
    return total;
  } catch (error) {
    if (limit.aborted) return null;
    throw error;
  }
}
