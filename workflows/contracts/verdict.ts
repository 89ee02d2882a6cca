import type { BlobRef } from './blob.ts';
import type { Flag } from './flags.ts';
import type { Resolution } from './resolution.ts';

/**
 * How far the code under test can get at what judges it; see docs/grading.md.
 *
 * - `in-process`: it is loaded into the process that says what its tests came to, and can make that say anything
 * - `same-account`: the task's own script decides how it is run; at best in a process of its own, under the script's account
 * - `other-account`: its processes are another account's, and the tests' account can't read the workspace
 */
export type Exposure = 'in-process' | 'same-account' | 'other-account';

/** What the tests said. The reward is a pure function of it (algorithms/reward.ts). */
export interface Verdict {
  /**
   * - `graded`: the tests wrote a reward in [0, 1], or their log could be judged
   * - `timeout`: they ran out of time (a solution that hangs is the policy's doing)
   * - `no-reward`: they ended without writing one
   * - `refused`: they are judged by their log, and it can't be believed; `resolution` says why
   * - `patch-failed`: the diff does not apply to a fresh workspace
   */
  readonly kind: 'graded' | 'timeout' | 'no-reward' | 'refused' | 'patch-failed';
  /** What the tests wrote; null where they write none, and unless `graded`. */
  readonly value: number | null;
  readonly exitCode: number | null;
  /** Test by test, as far as the log shows them. */
  readonly passed: number;
  readonly failed: number;
  /** The tests' output, cut in the middle when it is long. */
  readonly log: BlobRef;
  /** Binds the verdict to what it judged: sha256 over diff, task bundle and image. */
  readonly subject: string;
  /** Version of the grader that judged it; absent from older workers. */
  readonly grader?: string;
  /** Of tests that are judged by their log: which of them decided. */
  readonly resolution?: Resolution;
  /** It was not evaluated now: an earlier evaluation of the same diff, task and image by the same grader said so. */
  readonly cached?: true;
  /** What became of each of them: `{ required: [{list, id, status}], others: {id: status}, problems: [{kind, detail}] }`. */
  readonly tests?: BlobRef;
  /** How the diff was applied; what a rollout captured applies exactly. Absent where none was, and from older workers. */
  readonly applied?: 'exact' | 'three-way' | 'fuzzy';
  /** Protected paths that the diff changed and the task has back: how many, and the first few. Null: none. */
  readonly restored?: { readonly count: number; readonly paths: readonly string[] } | null;
  /** Absent where no tests ran, and from older workers. */
  readonly exposure?: Exposure;
  /** What looks like a trick, in the diff and in the run of the tests; no reward depends on it. Absent: nothing, or not looked for. */
  readonly flags?: readonly Flag[];
}
