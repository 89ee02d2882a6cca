import { workflowInfo } from '@temporalio/workflow';
import { budgetReason, startsAllowed, useOf } from '../algorithms/budget.ts';
import type { BudgetUse } from '../contracts/budget.ts';
import type { RunInput } from '../contracts/run.ts';
import type { RunTally } from './run-tally.ts';

/** Computes what a run has used of its budget. */
export function usedBy({ rolloutsPerGroup }: RunInput, { cost, groupsStarted, startedAt }: RunTally): BudgetUse {
  return useOf(cost.rollouts, groupsStarted * rolloutsPerGroup, (Date.now() - startedAt) / 1000);
}

/**
 * Returns how many of the wanted groups the budget allows. If it allows none, the run pauses once it can make no step of what
 * is already paid for: `idle` says that no group is in flight and no step in progress.
 */
export function withinBudget(input: RunInput, tally: RunTally, wanted: number, idle: boolean): number {
  if (wanted === 0 || Object.keys(tally.budget).length === 0) return wanted;
  const used = usedBy(input, tally);
  const allowed = Math.min(wanted, startsAllowed(tally.budget, used, input.rolloutsPerGroup));
  if (allowed === 0 && idle) tally.pausedBecause ??= budgetReason(workflowInfo().workflowId, tally.budget, used);
  return allowed;
}
