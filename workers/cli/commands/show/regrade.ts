import { costsOfLedger, moneyOf } from '../../../../infra/report/cost-table.ts';
import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { readPrices } from '../../../../infra/report/prices.ts';
import { regradeStatusQuery } from '../../../../workflows/contracts/messages.ts';
import { type FoundWorkflow, isOpen } from '../../follow/find-workflow.ts';
import { findRegradeReport } from '../../follow/workflow-report.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { costText } from '../../text/cost.ts';
import { print, printJson } from '../../text/output.ts';
import { regradeText } from '../regrade/regrade-text.ts';
import { regradeProgress } from '../regrade/run-regrade.ts';
import { showResult } from './result.ts';

/** Shows a regrade: its progress, or its report once it has ended. */
export async function showRegrade(stack: StackClient, found: FoundWorkflow, json: boolean): Promise<void> {
  const { handle } = found;
  const prices = await readPrices(stack.config.prices);
  if (isOpen(found)) {
    const status = await handle.query(regradeStatusQuery);
    const costs = costsOfLedger(status.cost, {}, prices);
    if (json) return printJson({ ...status, money: costs && moneyOf(costs) });
    const pause = status.pausedBecause === null ? '' : `\npaused: ${status.pausedBecause}`;
    return print(`${handle.workflowId}\n${regradeProgress(status)}${pause}\n\n${costText(costs)}`);
  }
  const report = await findRegradeReport(stack, handle.workflowId);
  if (report === null) return showResult(stack, found, json);
  const costs = costsOfLedger(report.result.cost, {}, prices);
  if (json) printJson({ ...report, money: costs && moneyOf(costs) });
  else print(showHidden(`${regradeText(report)}\n\n${costText(costs)}`));
}
