/*
 * The seeds of sampling: texts that say whose tokens are sampled, so that two rollouts never share one, and the same rollout of a
 * run or sweep that is made again has the same. The gateway adds the turn, and hashes both to a number.
 */

export const groupSeed = (runSeed: number, group: number): string => `run/${runSeed}/${group}`;

export const rolloutSeed = (group: string, index: number): string => `${group}/${index}`;

/** The seed of an attempt in a sweep. A retry of an attempt that ended as `infra` has the same. */
export const attemptSeed = (
  sweepSeed: number,
  { task, attempt }: { readonly task: number; readonly attempt: number },
): string => `sweep/${sweepSeed}/${task}/${attempt}`;

export const epochSeed = (rollout: string, epoch: number): string => `${rollout}/${epoch}`;
