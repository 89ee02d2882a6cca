import {
  type Budget,
  type BudgetChange,
  type BudgetLimit,
  type BudgetUse,
  budgetLimits,
  limitNames,
} from '../contracts/budget.ts';
import type { Ledger } from '../contracts/cost.ts';
import { sandboxSecondsOf, totalOf } from './cost.ts';

/** The beginning of the reason of each pause by a budget, so that a higher budget can end it. */
export const budgetPause = 'the budget is used up';

/** Computes what counts against a budget. */
export function useOf(ledger: Ledger, rollouts: number, wallSeconds: number): BudgetUse {
  const total = totalOf(ledger);
  return {
    rollouts,
    tokens: total.promptTokens + total.sampledTokens,
    sandboxHours: sandboxSecondsOf(total) / 3600,
    wallHours: wallSeconds / 3600,
  };
}

/**
 * Returns how many starts of so many rollouts each are allowed: none once a limit is reached, and none that would exceed the
 * rollouts.
 */
export function startsAllowed(budget: Budget, used: BudgetUse, rolloutsEach: number): number {
  if (budgetLimits.some((limit) => limit !== 'rollouts' && isReached(budget, used, limit))) return 0;
  if (budget.rollouts === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(0, Math.floor((budget.rollouts - used.rollouts) / rolloutsEach));
}

/** Says which limits allow no further group, by how much, and how to continue. */
export function budgetReason(workflowId: string, budget: Budget, used: BudgetUse): string {
  const others = budgetLimits.filter((limit) => isReached(budget, used, limit));
  const reached = others.length > 0 ? others : (['rollouts'] as const);
  const figures = reached.map(
    (limit) => `${amount(used[limit])} of ${amount(budget[limit] ?? 0)} ${limitNames[limit]}`,
  );
  const example = reached.map((limit) => `${limitNames[limit]}=N`).join(',');
  return `${budgetPause}: ${figures.join(', ')}; raise it with \`temper budget ${workflowId} ${example}\``;
}

export function changeBudget(budget: Budget, change: BudgetChange): Budget {
  const limits = budgetLimits.flatMap((limit) => {
    const value = change[limit] === undefined ? budget[limit] : change[limit];
    return value === null || value === undefined ? [] : [[limit, value] as const];
  });
  return Object.fromEntries(limits);
}

const isReached = (budget: Budget, used: BudgetUse, limit: BudgetLimit): boolean =>
  used[limit] >= (budget[limit] ?? Number.POSITIVE_INFINITY);

const amount = (value: number): string => (Number.isInteger(value) ? String(value) : value.toFixed(3));
