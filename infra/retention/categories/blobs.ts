import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createStoreSweep, type StoreSweep } from '../../store/sweep.ts';
import { type Category, dayMs, type Entry, type RetentionContext } from '../category.ts';
import { type Ledger, recordOutcomes } from '../references/outcomes.ts';
import { findReferenced } from '../references/referenced.ts';
import { openWorkflows, type Root, schedules } from '../references/roots.ts';

/** The longest time from the first blob of a rollout to its end, for rollouts about which nothing is known any more. */
const rolloutLifeMs = 7 * dayMs;

/** Makes the category of the store's blobs, with the roots of all references besides those at the Temporal server. */
export function blobsOf(roots: readonly Root[]): Category {
  return {
    name: 'blobs',
    keeps:
      'what anything refers to, what was put or used within the last day, and what may belong to rollouts that the Temporal server forgot before their results were recorded',
    where: ({ paths }) => [paths.store],
    async *entries(context) {
      const sweep = createStoreSweep(context.paths.store);
      const graceEndMs = context.nowMs - context.graceMs;
      yield* leftoversOf(sweep, graceEndMs);
      // The order matters: a workflow that ends after the open ones were listed is among those whose ends are recorded next.
      const open = await findReferenced([openWorkflows, schedules], context);
      const ledger = await recordOutcomes(context);
      const kept = await findReferenced(roots, context);
      let unknown = 0;
      let unknownBytes = 0;
      for await (const { digest, bytes, usedAtMs } of sweep.list()) {
        const stays = usedAtMs >= graceEndMs || open.has(digest) || kept.has(digest);
        const known = stays || isKnown(ledger, context, usedAtMs);
        if (!known) {
          unknown += 1;
          unknownBytes += bytes;
        }
        const remove = async (): Promise<number> => ((await sweep.remove(digest, graceEndMs)) ? bytes : 0);
        const expired = stays || !known ? null : 'nothing refers to it';
        yield { name: digest, path: join(context.paths.store, digest.slice(0, 2), digest), bytes, expired, remove };
      }
      if (unknown > 0) context.note(unknownText(unknown, unknownBytes));
    },
  };
}

/** Whether all ends of rollouts that may have used a blob of this time are recorded, or the blob is older than the given age. */
function isKnown({ unknown }: Ledger, { cutoffMs }: RetentionContext, usedAtMs: number): boolean {
  if (cutoffMs !== null && usedAtMs < cutoffMs) return true;
  return !unknown.some(({ fromMs, toMs }) => fromMs - rolloutLifeMs <= usedAtMs && usedAtMs <= toMs);
}

const unknownText = (count: number, bytes: number): string =>
  `${count} blobs (${(bytes / 1e6).toFixed(1)} MB) stay although nothing is known to refer to them: they are from times whose rollouts the Temporal server has forgotten; --older-than removes them`;

async function* leftoversOf(sweep: StoreSweep, graceEndMs: number): AsyncIterable<Entry> {
  await sweep.finishRemovals(graceEndMs);
  for await (const { path, bytes, usedAtMs } of sweep.leftovers()) {
    const remove = async (): Promise<number> => {
      await rm(path, { force: true });
      return bytes;
    };
    yield { name: path, path, bytes, expired: usedAtMs < graceEndMs ? 'a killed process left it' : null, remove };
  }
}
