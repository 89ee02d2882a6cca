import type { Command } from 'commander';
import type { BudgetChange } from '../../../workflows/contracts/budget.ts';
import { runStatusQuery, setBudgetUpdate } from '../../../workflows/contracts/messages.ts';
import { onOpenWorkflow } from '../follow/open-workflow.ts';
import { type HomeOption, stackCommand } from '../stack/command.ts';
import { budgetText, parseBudget } from '../text/budget.ts';
import { print, printJson } from '../text/output.ts';

export function budgetCommand(): Command {
  return stackCommand(
    'budget',
    'Shows what a run has used of its budget, or changes its limits. A run that its budget paused continues.',
    'temper budget my-run rollouts=2000,tokens=none',
  )
    .argument('<run>', 'workflow id of a training run')
    .argument(
      '[limits]',
      'limits to change, of rollouts, tokens, sandbox-hours, wall-hours; none removes one',
      parseBudget,
    )
    .option('--json', 'print one JSON object to stdout')
    .action((run: string, change: BudgetChange | undefined, options: HomeOption & { readonly json?: true }) =>
      onOpenWorkflow(options, run, ['trainingRun'], async ({ handle }) => {
        if (change !== undefined) await handle.executeUpdate(setBudgetUpdate, { args: [change] });
        const { budget } = await handle.query(runStatusQuery);
        if (options.json) printJson(budget ?? null);
        else print(budgetText(budget));
      }),
    );
}
