import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { replaceFile } from '../store/files.ts';

/**
 * The ids of the renewals by which a home knows the record of its host as its own. Each is in a file of the home before the record
 * is written, since a write may succeed without an answer, or its process may die. A record with another id was written by
 * another copy of the home, such as a cloned disk or a restored backup.
 */
export interface Renewals {
  /**
   * Returns the id of the next renewal: that of one which has begun and is not known to have succeeded, or a new one.
   *
   * @param last The id of the last renewal that is known to have succeeded.
   */
  begin(last: string | undefined): Promise<string>;
  /** Whether a renewal came from this home. */
  isOwn(id: string, last: string | undefined): Promise<boolean>;
}

/** The last id by host, since a home may change its name and take the old one again. */
const renewalFile = z.record(z.string(), z.string());

export function createRenewals(path: string, host: string): Renewals {
  /** The id that a full disk has kept out of the file. */
  let unwritten: string | null = null;

  const begun = async (): Promise<string | null> => unwritten ?? (await readIds(path))[host] ?? null;

  return {
    async begin(last) {
      const known = await begun();
      if (known !== null && known !== last) return known;
      const id = randomUUID();
      const ids = { ...(await readIds(path)), [host]: id };
      unwritten = (await isWritten(path, ids)) ? null : id;
      return id;
    },
    isOwn: async (id, last) => id === last || id === (await begun()),
  };
}

async function readIds(path: string): Promise<Readonly<Record<string, string>>> {
  try {
    return renewalFile.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    const message = `cannot read ${path}: ${String(error)}; remove it and restart the host`;
    throw new TemperFailure('StoreUnavailable', message, { cause: error });
  }
}

/** Writes the file. A full disk is no reason to lose the lease: returns false then. */
async function isWritten(path: string, ids: Readonly<Record<string, string>>): Promise<boolean> {
  try {
    await replaceFile(path, `${JSON.stringify(ids)}\n`, 0o600);
    return true;
  } catch (error) {
    if (error instanceof TemperFailure && error.type === 'DiskFull') return false;
    throw error;
  }
}
