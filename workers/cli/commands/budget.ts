import type { Command } from 'commander';
import type { BudgetChange } from '../../../workflows/contracts/budget.ts';
import { runStatusQuery, setBudgetUpdate } from '../../../workflows/contracts/messages.ts';
import type { RunStatus } from '../../../workflows/contracts/run.ts';
import type { SweepStatus } from '../../../workflows/contracts/sweep.ts';
import { onOpenWorkflow } from '../follow/open-workflow.ts';
import { type JsonOption, stackCommand } from '../stack/command.ts';
import { budgetText, parseBudget } from '../text/budget.ts';
import { print, printJson } from '../text/output.ts';

export function budgetCommand(): Command {
  return stackCommand(
    'budget',
    'Shows what a run or a sweep has used of its budget, or changes its limits. If the budget paused it, it continues.',
    'temper budget my-run rollouts=2000,tokens=none',
  )
    .argument('<id>', 'workflow id of a training run or an evaluation sweep')
    .argument(
      '[limits]',
      'limits to change, of rollouts, tokens, sandbox-hours, wall-hours; none removes one',
      parseBudget,
    )
    .option('--json', 'print one JSON object to stdout')
    .action((id: string, change: BudgetChange | undefined, options: JsonOption) =>
      onOpenWorkflow(options, id, ['trainingRun', 'evaluationSweep'], async ({ handle }) => {
        if (change !== undefined) await handle.executeUpdate(setBudgetUpdate, { args: [change] });
        // Both kinds answer the same query.
        const { budget }: Pick<RunStatus | SweepStatus, 'budget'> = await handle.query(runStatusQuery);
        if (options.json) printJson(budget ?? null);
        else print(budgetText(budget));
      }),
    );
}
