import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What decides on a verdict beside this folder. */
const beside = [
  '../tasks/grading',
  '../tasks/harbor',
  '../tasks/task-toml',
  '../../workflows/algorithms/weighted-reward',
];

/**
 * Version of the grader: a digest of its sources, so that nobody has to remember to raise it. A change that changes no
 * verdict makes another version too, which costs a cached verdict and nothing else.
 */
export const graderVersion: string = digestOf(import.meta.dirname, beside);

/** Of all code below a folder and of files beside it, named without their endings. */
export function digestOf(folder: string, others: readonly string[]): string {
  const below = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.[jt]s$/.test(name));
  const ending = below[0]?.slice(-3) ?? '';
  const hash = createHash('sha256');
  for (const name of [...below, ...others.map((other) => `${other}${ending}`)].sort()) {
    const bytes = readFileSync(join(folder, name));
    hash.update(`${name.slice(0, -3)}\n${bytes.byteLength}\n`).update(bytes);
  }
  return hash.digest('hex').slice(0, 12);
}
