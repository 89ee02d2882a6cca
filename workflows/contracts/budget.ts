import { z } from 'zod';
import { integer, number } from './input.ts';

const rollouts = integer(1, 1_000_000_000, 'rollouts');
const tokens = integer(1, 1_000_000_000_000_000, 'tokens');
const hours = number(0.001, 10_000_000, 'hours');

/** The limits of what a run or a sweep may use. */
export const budget = z.strictObject({
  rollouts: rollouts.optional().describe('The largest number of rollouts to start. Default: no limit.'),
  tokens: tokens
    .optional()
    .describe(
      'The number of tokens, sent to the engine and sampled, from which nothing is started. Default: no limit.',
    ),
  sandboxHours: hours
    .optional()
    .describe("The hours in the agents' sandboxes from which nothing is started. Default: no limit."),
  wallHours: hours
    .optional()
    .describe('The hours since the start, pauses included, from which nothing is started. Default: no limit.'),
});
export type Budget = Readonly<z.output<typeof budget>>;

/** A change of some limits; null removes one. */
export const budgetChange = z.strictObject({
  rollouts: rollouts.nullish(),
  tokens: tokens.nullish(),
  sandboxHours: hours.nullish(),
  wallHours: hours.nullish(),
});
export type BudgetChange = Readonly<z.output<typeof budgetChange>>;

export const budgetLimits = ['rollouts', 'tokens', 'sandboxHours', 'wallHours'] as const;
export type BudgetLimit = (typeof budgetLimits)[number];

/** The use of each limit so far. Sandboxes and tokens of rollouts in flight are not in it, since they count at their end. */
export type BudgetUse = Readonly<Record<BudgetLimit, number>>;

/** The names of the limits, as the command line has them. */
export const limitNames: Readonly<Record<BudgetLimit, string>> = {
  rollouts: 'rollouts',
  tokens: 'tokens',
  sandboxHours: 'sandbox-hours',
  wallHours: 'wall-hours',
};
