import type { BlobRef } from './blob.ts';
import type { Flag } from './flags.ts';
import type { NetworkUse } from './network.ts';
import type { Resolution } from './resolution.ts';

/**
 * The access that the code under test has to the program that judges it; see docs/guides/grading.md.
 *
 * - `in-process`: it is loaded into the process that reports the results, and can make that process report anything
 * - `same-account`: the task's own script decides how it runs; at best in a separate process under the script's account
 * - `forgeable`: processes of the agent run on beside its tests, and it is root or can write where these find programs: they can
 *   write the verdict
 * - `same-sandbox`: the tests run in the agent's own sandbox, where whatever it left anywhere, also in services, may change them
 * - `snapshot`: the tests run in a fresh sandbox that holds all that it changed in its own, such as programs
 * - `other-account`: its processes run under another account, and the tests' account can't read the workspace
 */
export type Exposure = 'forgeable' | 'same-sandbox' | 'snapshot' | 'in-process' | 'same-account' | 'other-account';

/** The result of running the tests. The reward is a pure function of it (algorithms/reward.ts). */
export interface Verdict {
  /**
   * - `graded`: the tests wrote a reward in [0, 1], or their log could be judged
   * - `timeout`: they ran out of time (a solution that hangs is the policy's doing)
   * - `no-reward`: they ended without writing a reward
   * - `refused`: they are judged by their log, and it can't be trusted; `resolution` says why
   * - `patch-failed`: the diff does not apply to a fresh workspace, or the work cannot be placed or copied for the tests
   */
  readonly kind: 'graded' | 'timeout' | 'no-reward' | 'refused' | 'patch-failed';
  /** The reward that the tests wrote; null unless `graded`, and for tests that write none. */
  readonly value: number | null;
  /** The scores that the tests wrote beside their reward, of those that the task's step asks for; absent if it asks for none. */
  readonly scores?: Readonly<Record<string, number>>;
  readonly exitCode: number | null;
  /** The number of passed tests, as far as the log shows them. */
  readonly passed: number;
  /** The number of failed tests, as far as the log shows them. */
  readonly failed: number;
  /** The tests' output, shortened in the middle when it is long. */
  readonly log: BlobRef;
  /** The sha256 over diff, task bundle and image, which binds the verdict to what it judged. */
  readonly subject: string;
  /** The version of the grader. */
  readonly grader: string;
  /** The judgement on the log, for tests that are judged by it. */
  readonly resolution?: Resolution;
  /** Whether this is the verdict of an earlier evaluation of the same diff, task and image by the same grader. */
  readonly cached?: true;
  /** The results test by test: `{ required: [{list, id, status}], others: {id: status}, problems: [{kind, detail}] }`. */
  readonly tests?: BlobRef;
  /** The way in which the diff was applied; what a rollout captured applies exactly. Absent if no diff was applied. */
  readonly applied?: 'exact' | 'three-way' | 'fuzzy';
  /** Protected paths that the diff changed and that were restored: their number, and the first few. Null when there are none. */
  readonly restored?: { readonly count: number; readonly paths: readonly string[] } | null;
  /** The exposure of the tests to the code under test; absent if no tests ran. */
  readonly exposure?: Exposure;
  /** The use that the tests made of their network; absent if they had none. */
  readonly network?: NetworkUse;
  /** Suspected tricks in the diff and in the run of the tests; the verdict does not depend on them. Omitted when there are none. */
  readonly flags?: readonly Flag[];
}
