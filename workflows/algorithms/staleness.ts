/**
 * Staleness of a group at a step, in steps: (step − 1) − v, with v the smallest policy version over its sampled tokens.
 * Step s starts from version s − 1, so a group sampled wholly by that version has staleness 0.
 */
export const staleness = (step: number, minVersion: number): number => step - 1 - minVersion;

/**
 * How many groups may be started: in-flight + ready stay within (maxStaleness + 1) × groupsPerStep, and no more are started
 * than the remaining steps need. Admission by capacity bounds staleness (AReaL, arXiv 2505.24298, §4).
 */
export function admissible(options: {
  readonly inFlight: number;
  readonly ready: number;
  readonly groupsPerStep: number;
  readonly maxStaleness: number;
  readonly stepsLeft: number;
}): number {
  const { inFlight, ready, groupsPerStep, maxStaleness, stepsLeft } = options;
  const room = (maxStaleness + 1) * groupsPerStep - inFlight - ready;
  const needed = stepsLeft * groupsPerStep - inFlight - ready;
  return Math.max(0, Math.min(room, needed));
}
