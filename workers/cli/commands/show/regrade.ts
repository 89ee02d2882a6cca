import { costsOfLedger, moneyOf } from '../../../../infra/report/cost-table.ts';
import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { readPrices } from '../../../../infra/report/prices.ts';
import { regradeStatusQuery } from '../../../../workflows/contracts/messages.ts';
import type { KnownWorkflow } from '../../follow/find-known.ts';
import { isOpen } from '../../follow/find-workflow.ts';
import { regradeReportOf } from '../../follow/workflow-report.ts';
import type { ReadableStack } from '../../stack/stack-client.ts';
import { costText } from '../../text/cost.ts';
import { print, printJson } from '../../text/output.ts';
import { regradeText } from '../regrade/regrade-text.ts';
import { regradeProgress } from '../regrade/run-regrade.ts';
import { showRegradeWithoutReport } from './unreported.ts';

/** Shows a regrade: its progress, or its report once it has ended. */
export async function showRegrade(stack: ReadableStack, known: KnownWorkflow, json: boolean): Promise<void> {
  const { id, key, found } = known;
  const prices = await readPrices(stack.config.prices);
  if (found !== null && isOpen(found)) {
    const status = await found.handle.query(regradeStatusQuery);
    const costs = costsOfLedger(status.cost, {}, prices);
    if (json) return printJson({ ...status, money: costs && moneyOf(costs) });
    const pause = status.pausedBecause === null ? '' : `\npaused: ${status.pausedBecause}`;
    return print(`${id}\n${regradeProgress(status)}${pause}\n\n${costText(costs)}`);
  }
  const report = await regradeReportOf(stack, key);
  if (report === null) return showRegradeWithoutReport(stack, known, json);
  const costs = costsOfLedger(report.result.cost, {}, prices);
  if (json) printJson({ ...report, money: costs && moneyOf(costs) });
  else print(showHidden(`${regradeText(report)}\n\n${costText(costs)}`));
}
