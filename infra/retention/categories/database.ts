import { stat } from 'node:fs/promises';
import { claimDatabase } from '../../temporal/database.ts';
import { DevServerError } from '../../temporal/server-error.ts';
import type { Category } from '../category.ts';

/** The share of unused pages from which on the file is worth rewriting, and the least that this frees. */
const unusedShare = 0.25;
const leastBytes = 16 * 2 ** 20;

/** The database of the stack's own Temporal server. The server forgets closed workflows after a day and uses their space again. */
export const database: Category = {
  name: 'database',
  keeps:
    'what the Temporal server keeps: open workflows, and closed ones for a day; its unused pages go when no stack runs on the home',
  where: ({ paths }) => [paths.database, `${paths.database}-wal`, `${paths.database}-shm`],
  async *entries({ paths }) {
    const found = await stat(paths.database).catch(() => null);
    if (found === null) return;
    const unused = await unusedBytes(paths.database);
    const worthIt = unused !== null && unused >= leastBytes && unused >= found.size * unusedShare;
    const expired = worthIt ? 'a quarter or more of it is unused: it is rewritten without' : null;
    yield {
      name: 'temporal.db',
      path: paths.database,
      bytes: worthIt ? unused : found.size,
      expired,
      remove: () => shrink(paths.database),
    };
  },
};

/** Returns the unused bytes of the file; null if a server has it open. */
async function unusedBytes(path: string): Promise<number | null> {
  return whileUnused(path, (sqlite) => {
    const number = (pragma: string): number => Number(Object.values(sqlite.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
    return number('freelist_count') * number('page_size');
  });
}

async function shrink(path: string): Promise<number> {
  const before = (await stat(path)).size;
  await whileUnused(path, (sqlite) => sqlite.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)'));
  return before - (await stat(path)).size;
}

/** Opens the database under the lock of its server; null if a server has it. */
async function whileUnused<T>(
  path: string,
  work: (sqlite: import('node:sqlite').DatabaseSync) => T,
): Promise<T | null> {
  const claim = await claimDatabase(path).catch((error: unknown) => {
    if (error instanceof DevServerError) return null;
    throw error;
  });
  if (claim === null) return null;
  try {
    const { DatabaseSync } = await import('node:sqlite');
    const sqlite = new DatabaseSync(claim.path);
    try {
      return work(sqlite);
    } finally {
      sqlite.close();
    }
  } finally {
    await claim.lock.release();
  }
}
