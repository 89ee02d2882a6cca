/*
 * Deterministic names. Everything that a rollout creates outside of Temporal carries its key, so that a retry finds what an
 * earlier try created.
 */

/**
 * One epoch of a rollout: one try with a fresh sandbox and trace. When a sandbox is lost the rollout raises its epoch, which
 * fences off late results of the earlier one.
 */
export interface RolloutEpoch {
  /** The rollout workflow's firstExecutionRunId. */
  readonly rollout: string;
  /** The number of the epoch, from 1. */
  readonly epoch: number;
}

export const sessionId = ({ rollout, epoch }: RolloutEpoch): string => `${rollout}.${epoch}`;

export const agentSandboxName = ({ rollout, epoch }: RolloutEpoch): string => `temper-${rollout}-${epoch}-agent`;
/**
 * Names an evaluation's sandbox. Each activity attempt has its own, so that an abandoned one can't remove the next one's, and
 * so has each step of a task that has several.
 */
export const evaluationSandboxName = ({ rollout, epoch }: RolloutEpoch, activityAttempt: number, step = 1): string =>
  `temper-${rollout}-${epoch}-evaluation-${step === 1 ? '' : `${step}-`}${activityAttempt}`;

/** Returns the end of a run's key, a UUIDv7, whose head is the time and alike for all runs that began within a minute. */
export const shortKey = (runKey: string): string => runKey.slice(-12);

/** The schedule, and the workflow that it starts, that look after what rollouts leave on a host. */
export const reaperId = (host: string): string => `temper-reaper-${host}`;

export const groupId = (run: string, runKey: string, index: number): string =>
  `${run}/${shortKey(runKey)}/group-${index}`;
export const rolloutId = (group: string, index: number): string => `${group}/rollout-${index}`;
export const stepId = (run: string, runKey: string, step: number): string => `${run}/${shortKey(runKey)}/step-${step}`;
/** The name under which trainer and engine know a policy version. */
export const policyName = (runKey: string, version: number): string => `${shortKey(runKey)}-v${version}`;
/** The name under which the trainer knows a checkpoint within a run's warm-up. */
export const warmUpName = (runKey: string, step: number): string => `${shortKey(runKey)}-w${step}`;
/** The workflow id of a sweep's rollout, from the numbers of its task, of the attempt at the task, and of the retry. */
export const sweepRolloutId = (
  sweep: string,
  sweepKey: string,
  { task, attempt, retry }: { readonly task: number; readonly attempt: number; readonly retry: number },
): string => `${sweep}/${shortKey(sweepKey)}/rollout-${task}-${attempt}${retry === 0 ? '' : `-retry-${retry}`}`;

/** Whether a workflow belongs to another run or sweep of the same name. */
export const belongsToNamesake = (workflowId: string, run: string, runKey: string): boolean =>
  workflowId.startsWith(`${run}/`) && !workflowId.startsWith(`${run}/${shortKey(runKey)}/`);

/**
 * The place of a rollout, as its workflow id says: a member of a run's group, an attempt of a sweep, or one by hand, whose id
 * may be used again. `owner` is the workflow id of the run, the sweep, or the rollout by hand.
 */
export type RolloutPlace = { readonly owner: string } & (
  | { readonly kind: 'run'; readonly key: string; readonly group: number; readonly name: string }
  | { readonly kind: 'sweep'; readonly key: string; readonly task: number; readonly name: string }
  | { readonly kind: 'by-hand' }
);

/** Reads a rollout's place from its workflow id, the reverse of `rolloutId` and `sweepRolloutId`. `key` is the short one. */
export function placeOfRollout(workflowId: string): RolloutPlace {
  const [, owner, key, group, ofRun, ofSweep, task] =
    /^(.+)\/([0-9A-Za-z_-]{1,12})\/(?:group-(\d+)\/(rollout-\d+)|(rollout-(\d+)-\d+(?:-retry-\d+)?))$/.exec(
      workflowId,
    ) ?? [];
  if (owner === undefined || key === undefined) return { kind: 'by-hand', owner: workflowId };
  if (ofRun !== undefined) return { kind: 'run', owner, key, group: Number(group), name: ofRun };
  return { kind: 'sweep', owner, key, task: Number(task), name: ofSweep ?? '' };
}
