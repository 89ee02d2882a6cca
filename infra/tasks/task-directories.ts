import { realpath, stat } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import { LRUCache } from 'lru-cache';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { findMarked, type MarkedDirectories, sortDirectories } from '../data-sets/directories/marked-directories.ts';

/** The file that each task of a Harbor set has. */
const marker = 'task.toml';

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

/** Does the same for the directory of a task or of a set of tasks. Throws UnknownTask for a file, too. */
export async function resolveTaskDirectory(roots: readonly string[], path: string): Promise<string> {
  const real = await resolveBelowRoots(roots, path);
  if ((await stat(real)).isDirectory()) return real;
  throw new TemperFailure('UnknownTask', `harbor:${path}: expected a directory, got a file`);
}

/** Describes a missing path. Lists tasks next to it only if they are below a root, so that no other directory is revealed. */
async function describeMissing(roots: readonly (string | null)[], path: string): Promise<string> {
  const parent = await realpath(join(path, '..')).catch(() => null);
  const isVisible = parent !== null && roots.some((root) => root !== null && `${parent}${sep}`.startsWith(root + sep));
  const missing = 'no such file or directory';
  if (!isVisible) return missing;
  const tasks = (await sortDirectories(parent, marker).catch(() => null))?.tasks ?? [];
  const names = tasks.map((directory) => basename(directory));
  if (names.length === 0) return `${missing}, and no tasks next to it`;
  const shown = names.slice(0, 5).join(', ');
  return `${missing}; next to it are ${shown}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`;
}

/** Finds the tasks of a Harbor set, or the directory when it is itself a task. Throws TemperFailure UnknownTask if there are none. */
export async function findTaskDirectories(directory: string): Promise<MarkedDirectories> {
  const found = await findMarked(directory, marker);
  if (found.tasks.length > 0) return found;
  const text = `harbor:${directory}: expected a directory with ${marker}, or a directory of such directories or of groups of them; neither it nor the directories below it have one`;
  throw new TemperFailure('UnknownTask', text);
}

export interface TaskDirectories {
  /** Returns the task directories of a Harbor set, sorted by path: the same array until a task is added or removed. */
  of(directory: string): Promise<readonly string[]>;
}

interface KnownDirectories {
  readonly tasks: readonly string[];
  /** The modification times of the set and of its groups. */
  readonly times: ReadonlyMap<string, number>;
}

const maxKnownSets = 8;
/** The age from which a modification time identifies a directory's state. A younger directory may change within the same time. */
const settledMs = 5000;

/** Creates a finder that looks again into a set only after the set or one of its groups has changed. */
export function createTaskDirectories(): TaskDirectories {
  const cache = new LRUCache<string, KnownDirectories>({ max: maxKnownSets });
  return {
    async of(directory) {
      const known = cache.get(directory);
      if (known !== undefined && (await areTimesOf(known.times))) return known.tasks;
      cache.delete(directory);
      const startedAt = Date.now();
      const { tasks, groups } = await findTaskDirectories(directory);
      const times = new Map(await Promise.all(groups.map(async (group) => [group, await timeOf(group)] as const)));
      const isSettled = [...times.values()].every((time) => startedAt - time > settledMs);
      if (isSettled) cache.set(directory, { tasks, times });
      return tasks;
    },
  };
}

async function areTimesOf(times: ReadonlyMap<string, number>): Promise<boolean> {
  const same = await Promise.all([...times].map(async ([directory, time]) => (await timeOf(directory)) === time));
  return same.every(Boolean);
}

/** The modification time of a directory; that of one that no longer exists is never settled. */
const timeOf = (directory: string): Promise<number> =>
  stat(directory).then(
    ({ mtimeMs }) => mtimeMs,
    () => Number.NaN,
  );
