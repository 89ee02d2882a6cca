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
  const tasks = (await sortDirectories(parent).catch(() => null))?.tasks ?? [];
  const names = tasks.map((directory) => basename(directory));
  if (names.length === 0) return 'no such directory, and no tasks next to it';
  const shown = names.slice(0, 5).join(', ');
  return `no such directory; next to it are ${shown}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`;
}

/** The levels of directories between a set and its tasks. */
const groupLevels = 3;

/**
 * Returns the task directories in a directory, sorted by name, or the directory when it is itself a task. If none is in it, those
 * in its groups of tasks are returned: some sets have a directory for each subject.
 */
export async function findTaskDirectories(directory: string): Promise<readonly string[]> {
  if (await isTask(directory)) return [directory];
  const { tasks, others } = await sortDirectories(directory);
  const found = tasks.length > 0 ? tasks : await tasksInGroups(others, groupLevels);
  if (found.length > 0) return found;
  const text = `harbor:${directory}: expected a directory with task.toml, or a directory of such directories; neither it nor the ${groupLevels + 1} levels of directories below it have one`;
  throw new TemperFailure('UnknownTask', text);
}

/** Whether a directory is a task or has one in it, so that its own modification time tells when its tasks change. */
export async function holdsTasks(directory: string): Promise<boolean> {
  if (await isTask(directory)) return true;
  for (const child of await directoriesIn(directory)) if (await isTask(child)) return true;
  return false;
}

/** Returns the tasks in some directories, and in the levels of directories below that are not tasks themselves. */
async function tasksInGroups(groups: readonly string[], levels: number): Promise<readonly string[]> {
  if (levels === 0) return [];
  const found: string[] = [];
  for (const group of groups) {
    const { tasks, others } = await sortDirectories(group);
    found.push(...tasks, ...(await tasksInGroups(others, levels - 1)));
  }
  return found.sort();
}

interface SortedDirectories {
  readonly tasks: readonly string[];
  readonly others: readonly string[];
}

/** Tells the tasks in a directory from its other directories. */
async function sortDirectories(directory: string): Promise<SortedDirectories> {
  const children = await directoriesIn(directory);
  const areTasks = await Promise.all(children.map(isTask));
  return {
    tasks: children.filter((_, index) => areTasks[index]),
    others: children.filter((_, index) => !areTasks[index]),
  };
}

/** Returns the directories in a directory, sorted, apart from those that hold no tasks by convention. */
async function directoriesIn(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory() && !/^(?:\..*|node_modules)$/.test(entry.name))
    .map((entry) => join(directory, entry.name))
    .sort();
}

/** Whether a directory is a task. */
const isTask = (directory: string): Promise<boolean> =>
  stat(join(directory, 'task.toml')).then(
    (found) => found.isFile(),
    () => false,
  );
