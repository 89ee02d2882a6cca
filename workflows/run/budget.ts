import { setHandler, workflowInfo } from '@temporalio/workflow';
import { budgetPause, budgetReason, changeBudget, groupsAllowed, useOf } from '../algorithms/budget.ts';
import { type Budget, type BudgetChange, type BudgetUse, budgetChange } from '../contracts/budget.ts';
import { parseInput } from '../contracts/input.ts';
import { setBudgetUpdate } from '../contracts/messages.ts';
import type { RunInput } from '../contracts/run.ts';
import type { RunTally } from './tally.ts';

/** Computes what a run has used of its budget. */
export function usedBy({ rolloutsPerGroup }: RunInput, { cost, groupsStarted }: RunTally): BudgetUse {
  const wallSeconds = (Date.now() - workflowInfo().startTime.getTime()) / 1000;
  return useOf(cost.rollouts, groupsStarted * rolloutsPerGroup, wallSeconds);
}

/**
 * Returns how many of the wanted groups the budget allows. If it allows none, the run pauses once it can make no step of what
 * is already paid for: `idle` says that no group is in flight and no step in progress.
 */
export function withinBudget(input: RunInput, tally: RunTally, wanted: number, idle: boolean): number {
  if (wanted === 0 || Object.keys(tally.budget).length === 0) return wanted;
  const used = usedBy(input, tally);
  const allowed = Math.min(wanted, groupsAllowed(tally.budget, used, input.rolloutsPerGroup));
  if (allowed === 0 && idle) tally.pausedBecause ??= budgetReason(workflowInfo().workflowId, tally.budget, used);
  return allowed;
}

/** Handles the update `setBudget`, which also ends a pause by the budget. If that does not suffice, the run pauses again. */
export function handleBudget(tally: RunTally, changed: () => void): void {
  const set = (change: BudgetChange): Budget => {
    tally.budget = changeBudget(tally.budget, change);
    if (tally.pausedBecause?.startsWith(budgetPause)) tally.pausedBecause = null;
    changed();
    return tally.budget;
  };
  setHandler(setBudgetUpdate, set, {
    description: 'changes limits of the budget; null removes one, and those that are left out stay',
    validator: (change) => void parseInput('setBudget', budgetChange, change),
  });
}
