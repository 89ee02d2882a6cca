import { sharedFolders } from '../../store/objects.ts';
import { type Category, dayMs, type Entry, type RetentionContext } from '../category.ts';
import { nameOf } from '../objects.ts';
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
    folder: 'store',
    where: () => [],
    async *entries(context) {
      const { objects } = context;
      const graceEndMs = context.nowMs - context.graceMs;
      yield* leftoversOf(context, graceEndMs);
      // The order matters: a workflow that ends after the open ones were listed is among those whose ends are recorded next.
      const open = await findReferenced([openWorkflows, schedules], context);
      const ledger = await recordOutcomes(context);
      const kept = await findReferenced(roots, context);
      let unknown = 0;
      let unknownBytes = 0;
      for await (const { key, size: bytes, changedAtMs: usedAtMs } of objects.list('store')) {
        const digest = nameOf(key);
        const stays = usedAtMs >= graceEndMs || open.has(digest) || kept.has(digest);
        const known = stays || isKnown(ledger, context, usedAtMs);
        if (!known) {
          unknown += 1;
          unknownBytes += bytes;
        }
        const remove = async (): Promise<number> => ((await objects.remove(key, graceEndMs)) ? bytes : 0);
        const expired = stays || !known ? null : 'nothing refers to it';
        yield { name: digest, path: `${objects.location}/${key}`, keys: [key], bytes, expired, remove };
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

/** Completes removals that were killed, and yields the writes and uploads that were. */
async function* leftoversOf({ objects }: RetentionContext, graceEndMs: number): AsyncIterable<Entry> {
  for await (const { name, kind, size, changedAtMs, settle } of objects.leftovers(sharedFolders)) {
    if (kind === 'removal') {
      // A blob that was used meanwhile has no name until then, so that this does not wait, not even in a dry run.
      await settle(graceEndMs);
      continue;
    }
    const remove = async (): Promise<number> => ((await settle(graceEndMs)) ? size : 0);
    const expired = changedAtMs < graceEndMs ? 'a killed process left it' : null;
    yield { name, path: `${objects.location}/${name}`, bytes: size, expired, remove };
  }
}
