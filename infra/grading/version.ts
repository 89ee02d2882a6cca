import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What decides on a verdict beside this folder: how a task is read, and the sandbox that its tests run in. */
const beside = [
  '../tasks/harbor/build-context',
  '../tasks/harbor/dockerfile',
  '../tasks/harbor/grading',
  '../tasks/harbor/harbor',
  '../tasks/harbor/host-variables',
  '../tasks/harbor/task-toml',
  '../tasks/harbor/unsupported',
  '../../activities/host/evaluate',
  '../../activities/host/host',
  '../../workflows/algorithms/weighted-reward',
];
const folders = ['.', '../sandbox', '../kits/test-logs'];

/**
 * Version of the grader: a digest of its sources, so that nobody has to remember to raise it. A change that changes no
 * verdict makes another version too, which costs a cached verdict and nothing else.
 */
export const graderVersion: string = digestOf(import.meta.dirname, folders, beside);

/** Of all code below folders and of other files, named without their endings; all of them as seen from a root. */
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
