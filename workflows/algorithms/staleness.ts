/**
 * Staleness of a group at a step, in steps: (step − 1) − v, with v the smallest policy version over its sampled tokens.
 * Step s starts from version s − 1, so a group sampled wholly by that version has staleness 0.
 */
export const staleness = (step: number, minVersion: number): number => step - 1 - minVersion;

/**
 * The number of groups that may be started. The groups that are not trained yet (in flight, ready, or in the step in
 * progress) stay within (maxStaleness + 1) × groupsPerStep, and no more are started than the remaining steps need. So a group
 * that is trained in order has at most the staleness maxStaleness. Admission by capacity: AReaL, arXiv 2505.24298, §4.
 */
export function admissible(options: {
  readonly inFlight: number;
  readonly ready: number;
  readonly inStep: number;
  readonly groupsPerStep: number;
  readonly maxStaleness: number;
  /** The number of remaining steps, without the one in progress. */
  readonly stepsLeft: number;
}): number {
  const { inFlight, ready, inStep, groupsPerStep, maxStaleness, stepsLeft } = options;
  const free = (maxStaleness + 1) * groupsPerStep - inFlight - ready - inStep;
  const needed = stepsLeft * groupsPerStep - inFlight - ready;
  return Math.max(0, Math.min(free, needed));
}
