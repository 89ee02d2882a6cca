import { costsOfLedger, moneyOf } from '../../../../infra/report/cost-table.ts';
import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { readPrices } from '../../../../infra/report/prices.ts';
import { sweepStatusQuery } from '../../../../workflows/contracts/messages.ts';
import { type FoundWorkflow, isOpen } from '../../follow/find-workflow.ts';
import { findSweepReport } from '../../follow/workflow-report.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { budgetText } from '../../text/budget.ts';
import { costText } from '../../text/cost.ts';
import { print, printJson } from '../../text/output.ts';
import { sweepProgress } from '../eval/run-sweep.ts';
import { sweepText } from '../eval/sweep-text.ts';
import { showResult } from './result.ts';

/** Shows a sweep: its progress, or its report once it has ended. */
export async function showSweep(stack: StackClient, found: FoundWorkflow, json: boolean): Promise<void> {
  const { handle } = found;
  const prices = await readPrices(stack.config.prices);
  if (isOpen(found)) {
    const status = await handle.query(sweepStatusQuery);
    const costs = costsOfLedger(status.cost, status, prices);
    if (json) return printJson({ ...status, money: costs && moneyOf(costs) });
    const pause = status.pausedBecause === null ? '' : `\npaused: ${status.pausedBecause}`;
    const limits = Object.keys(status.budget?.limits ?? {}).length === 0 ? '' : `\n\n${budgetText(status.budget)}`;
    return print(`${handle.workflowId}\n${sweepProgress(status)}${pause}${limits}\n\n${costText(costs)}`);
  }
  const report = await findSweepReport(stack, handle.workflowId);
  // A sweep that failed has no report.
  if (report === null) return showResult(stack, found, json);
  const costs = costsOfLedger(report.result.cost.ledger, { ...report, ...report.result }, prices);
  if (json) printJson({ ...report, money: costs && moneyOf(costs) });
  else print(showHidden(`${sweepText(report)}\n\n${costText(costs)}`));
}
