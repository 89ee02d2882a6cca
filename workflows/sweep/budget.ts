import { budgetReason, startsAllowed, useOf } from '../algorithms/budget.ts';
import { totalOf } from '../algorithms/cost.ts';
import type { BudgetUse } from '../contracts/budget.ts';
import type { SweepTally } from './tally.ts';

/** Computes what a sweep has used of its budget. Retries count as rollouts. */
export function usedBySweep({
  sums,
  inFlight,
  startedAt,
}: Pick<SweepTally, 'sums' | 'inFlight' | 'startedAt'>): BudgetUse {
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
