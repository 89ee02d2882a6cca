import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';

/**
 * What people filter by in the Temporal UI. Few on purpose: a SQL visibility store has ten Keyword columns and three of
 * each other kind, shared by everybody in the namespace.
 */
export const searchAttributes = {
  /** Workflow id of the training run. */
  run: defineSearchAttributeKey('TemperRun', SearchAttributeType.KEYWORD),
  step: defineSearchAttributeKey('TemperStep', SearchAttributeType.INT),
  task: defineSearchAttributeKey('TemperTask', SearchAttributeType.KEYWORD),
  agent: defineSearchAttributeKey('TemperAgent', SearchAttributeType.KEYWORD),
  /** A rollout's outcome; absent while it runs. */
  outcome: defineSearchAttributeKey('TemperOutcome', SearchAttributeType.KEYWORD),
  policyVersion: defineSearchAttributeKey('TemperPolicyVersion', SearchAttributeType.INT),
  reward: defineSearchAttributeKey('TemperReward', SearchAttributeType.DOUBLE),
} as const;

/** A mean as a column of a list shows it; the whole number is in the result. */
export const shownReward = (reward: number) => ({
  key: searchAttributes.reward,
  value: Math.round(reward * 10_000) / 10_000,
});
