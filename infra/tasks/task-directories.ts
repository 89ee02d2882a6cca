import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

/**
 * Returns the real path of a file or directory below one of the task roots. Links cannot lead out of them. Throws
 * TemperFailure UnknownTask.
 */
export async function resolveBelowRoots(roots: readonly string[], path: string): Promise<string> {
  const real = await realpath(path).catch(() => null);
  const realRoots = await Promise.all(roots.map((root) => realpath(root).catch(() => null)));
  const isBelow = realRoots.some((root) => root !== null && (real === root || real?.startsWith(root + sep)));
  if (real !== null && isBelow) return real;
  if (real === null) throw new TemperFailure('UnknownTask', `${path}: ${await describeMissing(realRoots, path)}`);
  const allowed = roots.length === 0 ? 'none are configured' : roots.join(', ');
  const text = `${path}: expected a path below one of the task roots (${allowed}), got ${real}; add its root to TEMPER_TASK_ROOTS`;
  throw new TemperFailure('UnknownTask', text);
}

/** Describes a missing path. Lists tasks next to it only if they are below a root, so that no other directory is revealed. */
async function describeMissing(roots: readonly (string | null)[], path: string): Promise<string> {
  const parent = await realpath(join(path, '..')).catch(() => null);
  const isVisible = parent !== null && roots.some((root) => root !== null && `${parent}${sep}`.startsWith(root + sep));
  if (!isVisible) return 'no such directory';
  const names = (await findTaskDirectories(parent).catch(() => [])).map((directory) => basename(directory));
  if (names.length === 0) return 'no such directory, and no tasks next to it';
  const shown = names.slice(0, 5).join(', ');
  return `no such directory; next to it are ${shown}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`;
}

/** Returns the task directories in a directory, sorted by name, or the directory when it is itself a task. */
export async function findTaskDirectories(directory: string): Promise<readonly string[]> {
  if (await isTask(directory)) return [directory];
  const entries = await readdir(directory, { withFileTypes: true });
  const children = entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name));
  const areTasks = await Promise.all(children.map(isTask));
  const tasks = children.filter((_, index) => areTasks[index]).sort();
  if (tasks.length > 0) return tasks;
  const text = `harbor:${directory}: expected a directory with task.toml, or a directory of such directories; it has ${entries.length} entries, none with a task.toml`;
  throw new TemperFailure('UnknownTask', text);
}

const isTask = (directory: string): Promise<boolean> =>
  stat(join(directory, 'task.toml')).then(
    (found) => found.isFile(),
    () => false,
  );
