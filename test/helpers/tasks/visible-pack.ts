import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unpackArchive } from '../../../infra/data-sets/fetch/archive.ts';
import { optionalData } from '../optional-data.ts';

/** The tracks of the pack, each with the parser of its runner's own report where its tests print one besides the summary. */
export const tracks = {
  quixbugs: null,
  'exercism-python': null,
  'exercism-javascript': 'tap',
  'exercism-bash': 'bats',
} as const;

export type Track = keyof typeof tracks;

export const trackOf = (task: string): Track => {
  const found = Object.keys(tracks).find((track) => task.startsWith(`${track}-`));
  if (found === undefined) throw new Error(`expected a task of ${Object.keys(tracks).join(', ')}, got ${task}`);
  return found as Track;
};

export interface VisiblePack {
  readonly root: string;
  readonly tasks: readonly string[];
  /** Returns a number of tasks of each track, evenly spread over it. */
  sample(ofEach: number): readonly string[];
  /** Returns the tests that have to pass, as the task itself states. */
  required(task: string): Promise<{ readonly failToPass: readonly string[]; readonly passToPass: readonly string[] }>;
}

export async function unpackPack(directory: string): Promise<VisiblePack> {
  const root = join(await unpackArchive(optionalData.taskPack, directory), 'tasks-visible');
  const tasks = (await readdir(root)).filter((name) => existsSync(join(root, name, 'task.toml'))).sort();
  return {
    root,
    tasks,
    sample: (ofEach) =>
      Object.keys(tracks).flatMap((track) => {
        const all = tasks.filter((task) => trackOf(task) === track);
        return all.filter((_, index) => (index * ofEach) % all.length < ofEach);
      }),
    async required(task) {
      const config = JSON.parse(await readFile(join(root, task, 'tests/config.json'), 'utf8'));
      return { failToPass: config.FAIL_TO_PASS, passToPass: config.PASS_TO_PASS };
    },
  };
}
