/**
 * Staleness of a group at a step, in steps: (step − 1) − v, with v the smallest policy version over its sampled tokens.
 * Step s starts from version s − 1, so a group sampled wholly by that version has staleness 0.
 */
export const staleness = (step: number, minVersion: number): number => step - 1 - minVersion;

/** A group that is not trained yet, with its oldest policy version: that of its oldest token or, in flight, of its admission. */
export type AgedGroup = readonly [index: number, version: number];

/** Orders groups as they must be trained so that none becomes too stale: by version, then by number. */
export const byAge = ([a, versionOfA]: AgedGroup, [b, versionOfB]: AgedGroup): number =>
  versionOfA - versionOfB || a - b;

/**
 * Returns the groups in flight that a step has to wait for. It need not wait if every group that it leaves can still be trained
 * within maxStaleness by a later step, the oldest first. If all of the oldest groups are ready, the step never waits, because the
 * admission bound then leaves time for the others.
 */
export function waitedFor(options: {
  readonly step: number;
  readonly inFlight: Iterable<AgedGroup>;
  readonly ready: Iterable<AgedGroup>;
  readonly groupsPerStep: number;
  readonly maxStaleness: number;
}): readonly number[] {
  const { step, groupsPerStep, maxStaleness } = options;
  const inFlight = [...options.inFlight];
  const ready = [...options.ready].sort(byAge);
  const left = [...inFlight, ...ready.slice(groupsPerStep)].sort(byAge);
  const isInTime = ([, version]: AgedGroup, position: number): boolean =>
    staleness(step + 1 + Math.floor(position / groupsPerStep), version) <= maxStaleness;
  if (left.every(isInTime)) return [];
  const running = new Set(inFlight);
  const oldest = [...inFlight, ...ready].sort(byAge).slice(0, groupsPerStep);
  return oldest.filter((group) => running.has(group)).map(([index]) => index);
}

/** Says for people which groups the next step waits for. */
export const waitText = ({ step, waitsFor }: { readonly step: number; readonly waitsFor: readonly number[] }): string =>
  `step ${step + 1} waits for ${waitsFor.length === 1 ? 'group' : 'groups'} ${waitsFor.join(', ')}, which it would make too stale`;

/**
 * The number of groups that may be started. The groups that are not trained yet (in flight, ready, or in the step in
 * progress) stay within (maxStaleness + 1) × groupsPerStep, and no more are started than the remaining steps need. So a group
 * that is trained in order has at most the staleness maxStaleness; `waitedFor` keeps the order. Admission by capacity: AReaL,
 * arXiv 2505.24298, §4.
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
