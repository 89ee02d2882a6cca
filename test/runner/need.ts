import { basename } from 'node:path';

/**
 * Something that a test needs beyond Node, git and files of its own. The name of a test file says it, one word for each
 * need: `rollout.temporal.sandbox.test.ts`.
 */
export interface Need {
  readonly word: string;
  /** The need's name in messages, such as `Docker`. */
  readonly name: string;
  readonly availability: Availability;
  /** Whether CI provides it, so that CI fails where it is missing. */
  readonly providedInCi: boolean;
}

export type Availability = { readonly usable: true } | { readonly usable: false; readonly reason: string };

/**
 * The words that a test file's name may hold. `temporal`, `sandbox` and `process` are always available, and are named
 * since they cost seconds: such tests stay out of `npm run test:fast`. A file with `process` has a process of its own.
 * `alone` needs the machine: no other file runs beside. Files with `kubernetes`, `machines` or `compose`, or with both `docker`
 * and `process`, run one by one beside the others. `reference` and `deploy` are suites with commands of their own.
 */
export const needWords = [
  'temporal',
  'sandbox',
  'process',
  'docker',
  'compose',
  'bubblewrap',
  's3',
  'strace',
  'postgres',
  'machines',
  'kubernetes',
  'helm',
  'data',
  'reference',
  'deploy',
  'alone',
] as const;

/** Returns the needs that a file's name states: `a/b.docker.data.test.ts` has `docker` and `data`. */
export function needsOf(file: string): readonly string[] {
  return basename(file).split('.').slice(1, -2);
}
