import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';

/**
 * The search attributes that people filter by in the Temporal UI. There are few on purpose: a SQL visibility store has
 * ten Keyword columns and three of each other kind, shared by the whole namespace.
 */
export const searchAttributes = {
  run: defineSearchAttributeKey('TemperRun', SearchAttributeType.KEYWORD),
  step: defineSearchAttributeKey('TemperStep', SearchAttributeType.INT),
  task: defineSearchAttributeKey('TemperTask', SearchAttributeType.KEYWORD),
  agent: defineSearchAttributeKey('TemperAgent', SearchAttributeType.KEYWORD),
  host: defineSearchAttributeKey('TemperHost', SearchAttributeType.KEYWORD),
  outcome: defineSearchAttributeKey('TemperOutcome', SearchAttributeType.KEYWORD),
  policyVersion: defineSearchAttributeKey('TemperPolicyVersion', SearchAttributeType.INT),
  reward: defineSearchAttributeKey('TemperReward', SearchAttributeType.DOUBLE),
} as const;

/** One sentence on each search attribute: which workflows have it, and what it holds. */
export const searchAttributeDescriptions: Readonly<Record<keyof typeof searchAttributes, string>> = {
  run: 'The workflow id of the run or sweep; on everything that belongs to one, and on regrades and schedules by steps.',
  step: 'The step: on a run the last finished one, on a training step its own, on a group the one at admission.',
  task: 'The task of a group or rollout.',
  agent: 'The agent of a run, group, rollout or sweep.',
  host: 'The host of a rollout, in its current epoch.',
  outcome: 'The outcome of a rollout that has ended.',
  policyVersion: 'The policy version: on runs, sweeps and the rollouts of sweeps; at admission on groups and rollouts.',
  reward: 'The reward of a rollout, the mean reward of the last step of a run, or of the counted attempts of a sweep.',
};

/** Returns the search attribute that shows a mean reward in a list, rounded to four digits. */
export const shownReward = (reward: number) => ({
  key: searchAttributes.reward,
  value: Math.round(reward * 10_000) / 10_000,
});

/** The longest text that a SQL visibility store takes. A server on PostgreSQL never lists a workflow with a longer one. */
const mostCharacters = 255;

/** Returns a search attribute that holds a text, whose middle is left out if it is too long for a list. */
export function shownText(key: typeof searchAttributes.task, text: string) {
  const half = Math.floor((mostCharacters - 1) / 2);
  const value = text.length <= mostCharacters ? text : `${text.slice(0, half)}…${text.slice(-half)}`;
  return { key, value: value.toWellFormed() };
}
