import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { FileEntry, FileTree } from '../sandbox/files.ts';

const limits = { files: 20_000, bytes: 512 * 1024 * 1024 } as const;

/**
 * Reads a task's directory. Links to files inside it are followed. Links that leave it, links to directories and special files
 * are rejected, since the author of a task could otherwise read the host's files. Throws TemperFailure MalformedTask.
 */
export async function readTaskDirectory(directory: string): Promise<FileTree> {
  const root = await realpath(directory);
  const tree = new Map<string, FileEntry>();
  let bytesLeft: number = limits.bytes;
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    if (entry.isDirectory()) continue;
    const path = join(entry.parentPath, entry.name);
    const name = relative(root, path).split(sep).join('/');
    const target = entry.isSymbolicLink() ? await linkTarget(root, path, name) : path;
    const { size, mode } = await regularFile(target, name);
    bytesLeft -= size;
    if (bytesLeft < 0 || tree.size >= limits.files) throw tooLarge(root, name);
    tree.set(name, { mode: mode & 0o777, bytes: await readFile(target) });
  }
  return tree;
}

async function linkTarget(root: string, path: string, name: string): Promise<string> {
  const target = await realpath(path).catch(() => null);
  if (target?.startsWith(root + sep)) return target;
  throw malformed(
    name,
    `expected files of the task itself, got a link to ${target ?? 'nothing'}; copy the file into the task`,
  );
}

async function regularFile(path: string, name: string): Promise<{ readonly size: number; readonly mode: number }> {
  const found = await stat(path);
  if (found.isFile()) return found;
  throw malformed(
    name,
    `expected a regular file, got ${found.isDirectory() ? 'a link to a directory' : 'a special file'}`,
  );
}

const tooLarge = (root: string, name: string): TemperFailure =>
  malformed(name, `expected at most ${limits.files} files and ${limits.bytes} bytes in ${root}, got more`);

const malformed = (name: string, problem: string): TemperFailure =>
  new TemperFailure('MalformedTask', `${name}: ${problem}`);
