import { firstOfEach } from '../../workflows/algorithms/flags.ts';
import { isSolved } from '../../workflows/algorithms/reward.ts';
import type { Diff } from '../../workflows/contracts/diff.ts';
import type { Flag } from '../../workflows/contracts/flags.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import type { Store } from '../store/store.ts';
import { type Evidence, evidenceIn } from './evidence/evidence.ts';
import { unreadFlag } from './flags/capture.ts';
import { flagEvaluation } from './flags/evaluation.ts';
import type { Protection } from './protection/rules.ts';
import type { GradedTask } from './task.ts';
import type { TestRun } from './tests/test-run.ts';
import { toVerdict } from './verdict.ts';

export interface Judged {
  readonly verdict: Verdict;
  /** The faults that the run shows; empty for a full reward. One evaluation cannot say whether the task, the host or the work has caused them. */
  readonly evidence: readonly Evidence[];
}

interface PatchToJudge {
  readonly patch: Uint8Array;
  readonly protection: Protection;
  /** Digest of what the verdict is about. */
  readonly subject: string;
  /** The flags of changes that the patch does not show. Default: none. */
  readonly beyond?: readonly Flag[];
}

/** Judges a run of the tests over a patch. The verdict also says how the work was placed. */
export async function judgeRun(
  store: Store,
  run: TestRun,
  { patch, protection, subject, beyond = [] }: PatchToJudge,
  placed: Pick<Verdict, 'applied' | 'restored'> = {},
): Promise<Judged> {
  const flags = firstOfEach([...flagEvaluation(patch, protection, run), ...beyond]);
  const verdict = { ...(await toVerdict(store, run, { subject, flags })), ...placed };
  return { verdict, evidence: isSolved(verdict) ? [] : evidenceIn(run) };
}

/**
 * Judges work that cannot be placed for the tests, or in which the task's own files cannot be restored. It always has a flag: its
 * reward is 0 without a run of the tests.
 */
export async function judgeRefused(
  store: Store,
  refusal: string,
  { patch, protection, subject, beyond = [] }: PatchToJudge,
): Promise<Judged> {
  const log = Buffer.from(`The diff does not apply:\n${refusal}\n`);
  const found = firstOfEach([...flagEvaluation(patch, protection, null), ...beyond]);
  const flags = found.length > 0 ? found : [unreadFlag(refusal)];
  const failed = { kind: 'patch-failed', value: null, exitCode: null, log } as const;
  return { verdict: await toVerdict(store, failed, { subject, flags }), evidence: [] };
}

interface EndedWork {
  readonly task: Pick<GradedTask, 'protection'>;
  readonly diff: Diff;
  readonly subject: string;
}

/** Judges work whose code ended the sandbox of its evaluation; `evidence` describes how. */
export async function judgeEnded(store: Store, evidence: string, { task, diff, subject }: EndedWork): Promise<Judged> {
  const log = Buffer.from(`The solution brought the sandbox of its evaluation down: ${evidence}\n`);
  const patch = await store.get(diff.patch.digest);
  const ended = { trick: 'limit', evidence: `the evaluation's sandbox was brought down: ${evidence}` } as const;
  const flags = firstOfEach([...flagEvaluation(patch, task.protection, null), ended]);
  const run = { kind: 'no-reward', value: null, exitCode: null, log } as const;
  return { verdict: await toVerdict(store, run, { subject, flags }), evidence: [] };
}
