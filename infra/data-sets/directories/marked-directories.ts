import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** The levels of directories between a set and its tasks. */
const groupLevels = 3;

/**
 * Returns the task directories in a directory, sorted by path, or the directory when it is itself a task. If none is in it, those
 * in its groups of tasks are returned: some sets have a directory for each subject. A task has a file of the name `marker`.
 */
export async function findMarked(directory: string, marker: string): Promise<readonly string[]> {
  if (await isMarked(directory, marker)) return [directory];
  const { tasks, others } = await sortDirectories(directory, marker);
  return tasks.length > 0 ? tasks : inGroups(others, marker, groupLevels);
}

/** Returns the tasks in some directories, and in the levels of directories below that are not tasks themselves. */
async function inGroups(groups: readonly string[], marker: string, levels: number): Promise<readonly string[]> {
  if (levels === 0) return [];
  const found: string[] = [];
  for (const group of groups) {
    const { tasks, others } = await sortDirectories(group, marker);
    found.push(...tasks, ...(await inGroups(others, marker, levels - 1)));
  }
  return found.sort();
}

interface SortedDirectories {
  readonly tasks: readonly string[];
  readonly others: readonly string[];
}

/** Tells the tasks in a directory from its other directories, apart from those that hold no tasks by convention. */
export async function sortDirectories(directory: string, marker: string): Promise<SortedDirectories> {
  const entries = await readdir(directory, { withFileTypes: true });
  const children = entries
    .filter((entry) => entry.isDirectory() && !/^(?:\..*|node_modules)$/.test(entry.name))
    .map((entry) => join(directory, entry.name))
    .sort();
  const areTasks = await Promise.all(children.map((child) => isMarked(child, marker)));
  return {
    tasks: children.filter((_, index) => areTasks[index]),
    others: children.filter((_, index) => !areTasks[index]),
  };
}

/** Whether a directory is a task. */
export const isMarked = (directory: string, marker: string): Promise<boolean> =>
  stat(join(directory, marker)).then(
    (found) => found.isFile(),
    () => false,
  );
