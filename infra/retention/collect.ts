import { join } from 'node:path';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { tryLock } from '../process/file-lock.ts';
import type { Category, Entry, RetentionContext } from './category.ts';

/** The result of a pass over one category. */
export interface CategoryReport {
  readonly category: string;
  /** The number of removed entries, or, in a dry run, of those that would be removed. */
  readonly removed: number;
  readonly bytes: number;
  /** The reason why the category, or the rest of it, was skipped; null when it was done. */
  readonly skipped: string | null;
}

export interface CollectOptions {
  /** Whether to list only. */
  readonly dryRun: boolean;
  /** The time after which the pass ends, in milliseconds; the next pass continues. */
  readonly limitMs: number;
  /** Receives each entry that is removed, or, in a dry run, would be. */
  onEntry?(category: string, entry: Pick<Entry, 'name' | 'bytes' | 'expired'>): void;
}

/** Another process makes a pass on this home. */
export interface CollectedElsewhere {
  readonly holder: { readonly pid: number | null };
}

/**
 * Makes one pass over the categories: lists the entries of each, and removes those that have expired. A category about which
 * something cannot be known is skipped, and its report says so. The pass may be killed at any time.
 */
export async function collect(
  home: string,
  categories: readonly Category[],
  context: RetentionContext,
  options: CollectOptions,
): Promise<readonly CategoryReport[] | CollectedElsewhere> {
  const lock = await tryLock(join(home, 'retention.lock'));
  if ('holder' in lock) return lock;
  try {
    const deadline = performance.now() + options.limitMs;
    const reports: CategoryReport[] = [];
    for (const category of categories) reports.push(await collectIn(category, context, options, deadline));
    return reports;
  } finally {
    await lock.release();
  }
}

async function collectIn(
  category: Category,
  context: RetentionContext,
  { dryRun, onEntry }: CollectOptions,
  deadline: number,
): Promise<CategoryReport> {
  const { name } = category;
  let removed = 0;
  let bytes = 0;
  const report = (skipped: string | null): CategoryReport => ({ category: name, removed, bytes, skipped });
  try {
    for await (const entry of category.entries(context)) {
      context.signal.throwIfAborted();
      if (performance.now() > deadline) return report('the time of this pass is over; the next pass continues');
      if (entry.expired === null) continue;
      const freed = dryRun ? entry.bytes : await entry.remove();
      // Something that is in use again stays.
      if (freed === 0 && entry.bytes > 0) continue;
      removed += 1;
      bytes += freed;
      onEntry?.(name, entry);
    }
  } catch (error) {
    context.signal.throwIfAborted();
    return report(errorMessage(error));
  }
  return report(null);
}
