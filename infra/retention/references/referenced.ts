import { blobKey } from '../../store/store.ts';
import type { RetentionContext } from '../category.ts';
import { textOf } from '../object-text.ts';
import { digestsIn } from './history.ts';
import type { Root } from './roots.ts';

/** The blobs that something refers to. */
export interface Referenced {
  has(digest: string): boolean;
}

/** The part of a digest that is kept in memory. Two blobs with the same one would both stay. */
const keptDigits = 16;
/** A larger blob is no list and no report. */
const mostBytes = 64 * 2 ** 20;

/** Reads all roots, and the lists and reports that they name. Throws if any of it cannot be read. */
export async function findReferenced(roots: readonly Root[], context: RetentionContext): Promise<Referenced> {
  const seen = new Set<string>();
  const short = (digest: string): string => digest.slice(0, keptDigits);
  const opened = new Set<string>();

  async function follow(digest: string): Promise<void> {
    seen.add(short(digest));
    if (opened.has(digest)) return;
    opened.add(digest);
    for (const named of digestsIn(await readIfJson(context, digest))) await follow(named);
  }

  for (const root of roots) {
    for await (const { digest, mayRefer } of root.references(context)) {
      context.signal.throwIfAborted();
      if (mayRefer) await follow(digest);
      else seen.add(short(digest));
    }
  }
  return { has: (digest) => seen.has(short(digest)) };
}

/** Reads a blob that is JSON; empty for one of another kind, and for one that the store does not have. */
async function readIfJson({ objects }: RetentionContext, digest: string): Promise<string> {
  const key = blobKey(digest);
  const [first = 0] = (await objects.peek(key, 1)) ?? [];
  if (!/[[{]/.test(String.fromCharCode(first))) return '';
  const facts = await objects.stat(key);
  return facts === null || facts.size > mostBytes ? '' : textOf({ objects }, key);
}
