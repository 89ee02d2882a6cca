import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { touch } from '../process/touch.ts';
import { sha256 } from '../store/files.ts';
import type { DataSetAddress } from './address.ts';

// Which downloads each data set needs, and when it was last used: a file per data set, `uses/<name>`, whose lines are the
// downloads and whose time of change is the last use. Retention removes what no data set has needed for long.

/** Records the uses of downloads. */
export interface Uses {
  /** Records that the data set is used now, and that it needs a file or directory of the cache. */
  record(address: DataSetAddress, path?: string): Promise<void>;
}

export const usesFolder = 'uses';
/** The file whose time of change is the begin of the records: what was downloaded before may be in use without a record. */
export const sinceName = 'since';
/** The interval at which a use is recorded again. */
const renewMs = 3_600_000;

/** Creates the record of uses in the directory of downloads. */
export function createUses(root: string): Uses {
  const renewedAtMs = new Map<string, number>();
  return {
    async record(address, path) {
      const entry = path === undefined ? null : entryOf(relative(root, path));
      const key = [useName(address), entry ?? ''].join('\n');
      const now = performance.now();
      if (now - (renewedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < renewMs) return;
      renewedAtMs.set(key, now);
      await recordIn(join(root, usesFolder), useName(address), entry);
    },
  };
}

async function recordIn(directory: string, name: string, entry: string | null): Promise<void> {
  const file = join(directory, name);
  const known = await readFile(file, 'utf8').catch(() => '');
  if (entry === null || known.split('\n').includes(entry)) {
    await touch(file);
    return;
  }
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, sinceName), '', { flag: 'wx' }).catch(unlessThere);
  await appendFile(file, `${entry}\n`);
}

/** The name of the file of a data set's uses, which its tasks share. */
export const useName = ({ format, location, options }: DataSetAddress): string =>
  sha256(JSON.stringify([format, location, options])).slice(0, 24);

/** Returns the part of a path that is downloaded and removed as a whole; null for a path outside of the downloads. */
export function entryOf(path: string): string | null {
  return /^hub\/(?:[^/]+\/){1,2}[0-9a-f]{40}(?=\/|$)|^(?:urls|unpacked|repositories)\/[^/]+/.exec(path)?.[0] ?? null;
}

function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}
