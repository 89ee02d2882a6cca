import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { RetentionContext } from '../category.ts';
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
    for (const named of digestsIn(await readIfJson(context.paths.store, digest))) await follow(named);
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
async function readIfJson(store: string, digest: string): Promise<string> {
  const file = await open(join(store, digest.slice(0, 2), digest)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (file === null) return '';
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, 0);
    const isJson = bytesRead === 1 && /[[{]/.test(String.fromCharCode(buffer[0] ?? 0));
    return isJson && (await file.stat()).size <= mostBytes ? await file.readFile('latin1') : '';
  } finally {
    await file.close();
  }
}
