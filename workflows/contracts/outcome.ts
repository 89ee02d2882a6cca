/*
 * How a rollout ended, and what a run did with a group. Both unions are closed, and each value is final: the fate of a group
 * never rewrites the outcomes of its rollouts.
 */

export const outcomes = ['scored', 'infra', 'stale', 'invalid-task', 'cancelled'] as const;
/** The end of a rollout. */
export type Outcome = (typeof outcomes)[number];

/** One sentence on each outcome. */
export const outcomeDescriptions: Readonly<Record<Outcome, string>> = {
  scored: 'The diff was evaluated and has a reward.',
  infra: 'Something outside the sandbox failed; there is no reward.',
  stale: 'The group of the rollout fell too many steps behind the policy, and the rollout was stopped.',
  'invalid-task': 'The task cannot be read, set up or graded.',
  cancelled: 'The rollout was cancelled, or its agent ended in a way that the run does not score.',
};

export const fates = [
  'trained',
  'zero-variance',
  'excluded',
  'skipped',
  'withheld',
  'stale',
  'infra',
  'invalid-task',
  'cancelled',
  'in-flight',
] as const;
/** The use that a run made of a group. */
export type Fate = (typeof fates)[number];

/** The rewards of a group that teach nothing, because all are the same: all 0, all 1, or another number. */
export const equalRewards = ['all-0', 'all-1', 'equal'] as const;
export type EqualRewards = (typeof equalRewards)[number];
/** The spread of the rewards of a group. */
export type Spread = EqualRewards | 'mixed';

/** One sentence on each fate. */
export const fateDescriptions: Readonly<Record<Fate, string>> = {
  trained: "The group is in a step's batch.",
  'zero-variance': 'All rewards of the group were equal, and the run drops such groups.',
  excluded: 'Fewer than two rollouts could be compared, since flagged ones were left out (`onFlag`: `exclude`).',
  skipped: 'The step of the group failed, and was skipped by hand (`temper resume --skip-step`).',
  withheld:
    'The group fell more than `maxStaleness` steps behind; it ran to its end and was not trained (`onStale`: `withhold`).',
  stale:
    'The group fell more than `maxStaleness` steps behind, and was cancelled (`onStale`: `cancel`) or dropped, because older ' +
    'weights sampled it than the run had published (`wait`).',
  infra: 'Fewer than two rollouts were scored, and `infra` was the most frequent other outcome.',
  'invalid-task': 'Fewer than two rollouts were scored, and `invalid-task` was the most frequent other outcome.',
  cancelled:
    'Fewer than two rollouts were scored because they were cancelled, or the group was left over when the run ended.',
  'in-flight': 'The group has not ended yet.',
};

export const stopReasons = [
  'submitted',
  'exited',
  'crashed',
  'turn-limit',
  'token-budget',
  'deadline',
  'context-overflow',
  'memory-limit',
  'disk-limit',
  'killed',
] as const;
/** The reason why the agent stopped. When several reasons apply, the first one counts. */
export type StopReason = (typeof stopReasons)[number];

/** One sentence on each reason to stop. */
export const stopReasonDescriptions: Readonly<Record<StopReason, string>> = {
  submitted: 'The agent said that it is done.',
  exited: 'The agent ended without submitting.',
  crashed: 'The agent ended with an error.',
  'turn-limit': 'The agent used up `maxTurns`.',
  'token-budget': 'The agent used up `maxSampledTokens`.',
  deadline: 'The agent reached its time limit.',
  'context-overflow': 'The conversation no longer fits the context of the model.',
  'memory-limit': 'The sandbox ran out of memory.',
  'disk-limit': 'The sandbox ran out of disk space.',
  killed: 'The agent was ended by a signal.',
};

export type Count<Kind extends string> = Readonly<Record<Kind, number>>;

/** Returns a count of 0 for each kind. */
export function zeroCount<Kind extends string>(kinds: readonly Kind[]): Record<Kind, number> {
  return Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<Kind, number>;
}
