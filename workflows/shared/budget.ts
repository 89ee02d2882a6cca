import { setHandler } from '@temporalio/workflow';
import { budgetPause, changeBudget } from '../algorithms/budget.ts';
import { type Budget, type BudgetChange, budgetChange } from '../contracts/budget.ts';
import { parseInput } from '../contracts/input.ts';
import { setBudgetUpdate } from '../contracts/messages.ts';

/** The part of a run or a sweep that a budget stops. */
export interface Budgeted {
  budget: Budget;
  pausedBecause: string | null;
}

/** Handles the update `setBudget`, which also ends a pause by the budget. If that does not suffice, the next pause follows. */
export function handleBudget(budgeted: Budgeted, changed: () => void): void {
  const set = (change: BudgetChange): Budget => {
    budgeted.budget = changeBudget(budgeted.budget, change);
    if (budgeted.pausedBecause?.startsWith(budgetPause)) budgeted.pausedBecause = null;
    changed();
    return budgeted.budget;
  };
  setHandler(setBudgetUpdate, set, {
    description: 'changes limits of the budget; null removes one, and those that are left out stay',
    validator: (change) => void parseInput('setBudget', budgetChange, change),
  });
}
