import { budgetReason, startsAllowed, useOf } from '../algorithms/budget.ts';
import { totalOf } from '../algorithms/cost.ts';
import type { Budget, BudgetUse } from '../contracts/budget.ts';
import type { SweepFigures, SweepTally } from './tally.ts';

/** Computes what a sweep has used of its budget. Retries count as rollouts. */
export function usedBySweep({
  sums,
  inFlight,
  startedAt,
}: Pick<SweepFigures, 'sums' | 'inFlight' | 'startedAt'>): BudgetUse {
  const ledger = sums.cost;
  return useOf(ledger, totalOf(ledger).rollouts + inFlight.size, (Date.now() - startedAt) / 1000);
}

/** Returns how many of the wanted rollouts the budget allows. If one could start and none is allowed, the sweep pauses. */
export function withinBudget(sweep: string, tally: SweepTally, wanted: number): number {
  if (Object.keys(tally.budget).length === 0 || !tally.canStart) return wanted;
  const used = usedBySweep(tally);
  const allowed = startsAllowed(tally.budget, used, 1);
  if (allowed === 0) tally.pausedBecause ??= budgetReason(sweep, tally.budget, used);
  return Math.min(wanted, allowed);
}

/**
 * Returns why a sweep in windows must pause, by what they reported; null if it need not, or nothing is left to start. With
 * `usedUp`, a window has used up its part of the rollouts.
 */
export function reasonOfWindows(sweep: string, figures: SweepFigures, usedUp = false): string | null {
  const { budget, planned, ended, inFlight } = figures;
  const mayStart = Object.keys(budget).length === 0 || planned <= ended + inFlight.size;
  const used = usedBySweep(figures);
  if (!usedUp && (mayStart || startsAllowed(budget, used, 1) > 0)) return null;
  return budgetReason(sweep, budget, used);
}

/**
 * Returns the part of a window in the budget: its rollouts, so that they are never exceeded. The other limits are compared with
 * the sums over all windows.
 */
export function partOfWindow({ rollouts }: Budget, window: number, windows: number): Budget {
  if (rollouts === undefined) return {};
  return { rollouts: Math.floor(rollouts / windows) + (window < rollouts % windows ? 1 : 0) };
}
