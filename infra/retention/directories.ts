import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

export interface Found {
  readonly name: string;
  readonly path: string;
  readonly isDirectory: boolean;
  readonly changedAtMs: number;
}

/** Lists a directory, in order of names; empty if there is none. What a killed removal left behind is not listed. */
export async function listDirectory(directory: string): Promise<readonly Found[]> {
  return (await listAll(directory)).filter(({ name }) => !isRemoved(name));
}

/** Whether a file or directory of this name is being removed; see trees.ts. */
export const isRemoved = (name: string): boolean => /^\.removed-[0-9a-f]+$/.test(name);

/** Lists a directory with what killed removals left behind. */
export async function listAll(directory: string): Promise<readonly Found[]> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const found: Found[] = [];
  for (const name of names.sort()) {
    const path = join(directory, name);
    const stats = await lstatIfThere(path);
    if (stats !== null) found.push({ name, path, isDirectory: stats.isDirectory(), changedAtMs: stats.mtimeMs });
  }
  return found;
}

export function lstatIfThere(path: string) {
  return lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  });
}
