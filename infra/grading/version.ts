import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files outside these folders that decide on a verdict: they read a task, and weigh its scores. */
const otherFiles = [
  '../harbor/build-context',
  '../harbor/dockerfile',
  '../harbor/grading-file',
  '../harbor/harbor-task',
  '../harbor/task-steps',
  '../harbor/artifacts',
  '../harbor/test-environment',
  '../harbor/task-toml',
  '../../workflows/algorithms/weighted-reward',
  '../../workflows/algorithms/mean',
  '../../workflows/algorithms/rounding',
];
const folders = ['.', '../sandbox', '../kits/test-logs'];

/**
 * The version of the grader: a digest of its sources, so that no one has to remember to raise it. A change without effect on
 * verdicts makes a new version too, which only costs cached verdicts.
 */
export const graderVersion: string = digestOf(import.meta.dirname, folders, otherFiles);

/** Returns a digest of all code below the folders and of other files. All paths are relative to `root`; files lack endings. */
export function digestOf(root: string, folders: readonly string[], others: readonly string[]): string {
  const below = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.[jt]s$/.test(name))
      .map((name) => join(folder, name)),
  );
  const ending = below[0]?.slice(-3) ?? '';
  const hash = createHash('sha256');
  for (const name of [...below, ...others.map((other) => `${other}${ending}`)].sort()) {
    const bytes = readFileSync(join(root, name));
    hash.update(`${name.slice(0, -3)}\n${bytes.byteLength}\n`).update(bytes);
  }
  return hash.digest('hex').slice(0, 12);
}
