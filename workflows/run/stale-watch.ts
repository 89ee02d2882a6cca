import type { RunInput } from '../contracts/run.ts';
import type { StaleGroups } from '../contracts/run-state.ts';

/** The smallest number of groups that can be a reason to pause, unless the input names a smaller one. */
const fewest = 8;

/**
 * Counts the groups that were too stale to train on while no step was made. A step makes no more groups too stale than the run
 * keeps in flight, since those that start after it sample its weights. When more are too stale, their engines serve other
 * weights, and the run would pay without learning.
 */
export interface StaleWatch {
  readonly seen: StaleGroups;
  /** Counts a group, by its smallest policy version. */
  add(version: number): void;
  /** Forgets the groups: after a step, and after a resume, when those that were in flight may still be too stale. */
  forget(): void;
  /** Returns the reason to pause a run that is at this policy version, or null. */
  reasonToPause(policyVersion: number): string | null;
}

type Limits = Pick<RunInput, 'groupsPerStep' | 'maxStaleness' | 'pauseAtStaleGroups'>;

export function createStaleWatch(input: Limits, carried: StaleGroups | undefined): StaleWatch {
  const limit = input.pauseAtStaleGroups ?? defaultLimit(input);
  let seen = carried ?? { count: 0, lastVersion: 0 };
  return {
    get seen() {
      return seen;
    },
    add(version) {
      seen = { count: seen.count + 1, lastVersion: version };
    },
    forget() {
      seen = { count: 0, lastVersion: 0 };
    },
    reasonToPause(policyVersion) {
      const { count, lastVersion } = seen;
      if (count < limit) return null;
      return (
        `no step was made while ${count} groups were too stale to train on (the last was sampled by version ${lastVersion}, ` +
        `the policy is at ${policyVersion}); check that the hosts sample from the engines that the trainer publishes to ` +
        '(TEMPER_ENGINE_URLS, TEMPER_PUBLISH, engines.json), then resume'
      );
    },
  };
}

/** Returns twice the number of groups that a run keeps in flight: those in flight at a resume may still be too stale. */
const defaultLimit = ({ groupsPerStep, maxStaleness }: Limits): number =>
  Math.max(fewest, 2 * (maxStaleness + 1) * groupsPerStep);
