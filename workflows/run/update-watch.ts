import { type EqualRewards, equalRewards, zeroCount } from '../contracts/outcome.ts';
import type { StepResult } from '../contracts/run.ts';
import type { EmptySteps, RunUpdates } from '../contracts/run-state.ts';

const noSteps: EmptySteps = { steps: 0, groups: 0, equalGroups: zeroCount(equalRewards) };

/**
 * Counts the updates of a run, and the last steps in a row that made none. Those publish the same weights again, so that the
 * run pays without learning.
 */
export interface UpdateWatch extends RunUpdates {
  /** The counts, as continue-as-new carries them. */
  readonly carried: RunUpdates;
  /** Counts a finished step. One that was skipped by hand says nothing about its groups. */
  add(result: StepResult): void;
  /** Forgets the steps without an update. */
  forget(): void;
  /** Returns the reason to pause, or null. */
  reasonToPause(): string | null;
}

/** Creates a watch that has a reason to pause after this number of steps without an update. */
export function createUpdateWatch(pauseAt: number, carried: RunUpdates | undefined): UpdateWatch {
  let seen = carried ?? { made: 0, last: 0, empty: noSteps };
  return {
    get made() {
      return seen.made;
    },
    get last() {
      return seen.last;
    },
    get empty() {
      return seen.empty;
    },
    get carried() {
      return seen;
    },
    add(result) {
      if (result.batch !== null) seen = { made: seen.made + 1, last: result.step, empty: noSteps };
      else if (result.skippedBecause === null) seen = { ...seen, empty: withStep(seen.empty, result) };
    },
    forget() {
      seen = { ...seen, empty: noSteps };
    },
    reasonToPause() {
      const { steps, groups } = seen.empty;
      if (steps < pauseAt) return null;
      return (
        `the last ${steps} steps made no update, since their groups teach nothing: of ${groups} groups ` +
        `${spreadText(seen.empty)}; choose tasks of which the policy solves some, more rollouts per group or a warm-up, then resume`
      );
    },
  };
}

const withStep = (seen: EmptySteps, { groups, equalGroups }: StepResult): EmptySteps => ({
  steps: seen.steps + 1,
  groups: seen.groups + groups.trained + groups['zero-variance'],
  equalGroups: {
    'all-0': seen.equalGroups['all-0'] + equalGroups['all-0'],
    'all-1': seen.equalGroups['all-1'] + equalGroups['all-1'],
    equal: seen.equalGroups.equal + equalGroups.equal,
  },
});

const texts: Readonly<Record<EqualRewards, string>> = {
  'all-0': 'all 0',
  'all-1': 'all 1',
  equal: 'equal rewards between 0 and 1',
};

function spreadText({ groups, equalGroups }: EmptySteps): string {
  const other = groups - equalRewards.reduce((sum, kind) => sum + equalGroups[kind], 0);
  return [
    ...equalRewards.filter((kind) => equalGroups[kind] > 0).map((kind) => `${equalGroups[kind]} have ${texts[kind]}`),
    ...(other > 0 ? [`${other} have no token to train on`] : []),
  ].join(', ');
}
