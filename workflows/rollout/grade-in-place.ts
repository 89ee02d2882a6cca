import { evaluationOn } from '../activities.ts';
import type { BlobRef } from '../contracts/blob.ts';
import type { Diff } from '../contracts/diff.ts';
import type { RolloutEpoch } from '../contracts/ids.ts';
import type { RolloutInput } from '../contracts/rollout.ts';
import type { SandboxKind } from '../contracts/sandbox-kinds.ts';
import type { Task } from '../contracts/task.ts';
import type { Verdict } from '../contracts/verdict.ts';
import type { EpochHost } from './epoch-host.ts';
import { isSandboxLost, StageFailure } from './failure.ts';

/** The result of tests in the agent's own sandbox. A failure is kept, because the agent's work is there all the same. */
export type GradedInPlace = { readonly verdict: Verdict } | { readonly failure: StageFailure };

/** Whether the tests of a task run in the agent's own sandbox. */
export const isGradedInPlace = ({ gradedIn }: Task): boolean => gradedIn === 'same';

export interface WorkInPlace {
  readonly input: RolloutInput;
  readonly task: Task;
  readonly epoch: RolloutEpoch;
  readonly kind: SandboxKind;
  readonly diff: Diff;
  readonly answer?: BlobRef;
  readonly timeoutMs: number;
}

/** Runs the tests in the agent's sandbox. Throws if that is lost, since the rollout then begins again. */
export async function gradeInPlace(host: EpochHost, work: WorkInPlace): Promise<GradedInPlace> {
  const { input, timeoutMs, ...of } = work;
  const request = { ...of, timeoutMs, run: input.member?.run ?? '', sandbox: input.sandbox };
  try {
    // The time counts as that of the agent's sandbox.
    const { seconds: _, ...verdict } = await host.stage('evaluate', () =>
      evaluationOn(host.name, timeoutMs).evaluateInPlace({
        ...request,
        ...(host.adoptedAs !== undefined && { adoptedAs: host.adoptedAs }),
      }),
    );
    return { verdict };
  } catch (error) {
    if (!(error instanceof StageFailure) || isSandboxLost(error)) throw error;
    return { failure: error };
  }
}
