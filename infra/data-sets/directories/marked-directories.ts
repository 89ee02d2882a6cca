import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** The levels of directories that may be between a set and its tasks. */
export const groupLevels = 3;

/** The tasks that a directory was searched for. */
export interface MarkedDirectories {
  /** The task directories, sorted by path. */
  readonly tasks: readonly string[];
  /** The directories that were looked into. The modification time of one of them changes when a task is added or removed. */
  readonly groups: readonly string[];
}

/**
 * Finds the tasks in a directory and in its groups of tasks, since some sets have a directory for each subject. A task has a file
 * of the name `marker`; what is below it belongs to it. The directory may be a task itself.
 */
export async function findMarked(
  directory: string,
  marker: string,
  levels: number = groupLevels,
): Promise<MarkedDirectories> {
  if (await isMarked(directory, marker)) return { tasks: [directory], groups: [directory] };
  const found: string[] = [];
  const groups = [directory];
  let level = [directory];
  for (let depth = 0; depth <= levels && level.length > 0; depth += 1) {
    const next: string[] = [];
    for (const group of level) {
      const { tasks, others } = await sortDirectories(group, marker);
      found.push(...tasks);
      next.push(...others);
    }
    if (depth < levels) groups.push(...next);
    level = next;
  }
  return { tasks: found.sort(), groups };
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
