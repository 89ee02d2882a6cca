import { costsOfLedger, moneyOf } from '../../../../infra/report/cost-table.ts';
import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { readPrices } from '../../../../infra/report/prices.ts';
import { shortKey } from '../../../../workflows/contracts/ids.ts';
import { sweepStatusQuery } from '../../../../workflows/contracts/messages.ts';
import type { KnownWorkflow } from '../../follow/find-known.ts';
import { isOpen } from '../../follow/find-workflow.ts';
import { sweepReportOf } from '../../follow/workflow-report.ts';
import { setName, startedSet } from '../../stack/set-name.ts';
import type { ReadableStack } from '../../stack/stack-client.ts';
import { budgetText } from '../../text/budget.ts';
import { costText } from '../../text/cost.ts';
import { print, printJson } from '../../text/output.ts';
import { sweepProgress } from '../eval/run-sweep.ts';
import { sweepText } from '../eval/sweep-text.ts';
import { showSweepWithoutReport } from './unreported.ts';

/** Shows a sweep: its progress, or its report once it has ended. */
export async function showSweep(stack: ReadableStack, known: KnownWorkflow, json: boolean): Promise<void> {
  const { id, key, found } = known;
  const prices = await readPrices(stack.config.prices);
  if (found !== null && isOpen(found)) {
    const status = await found.handle.query(sweepStatusQuery);
    const costs = costsOfLedger(status.cost, status, prices);
    if (json) return printJson({ ...status, money: costs && moneyOf(costs) });
    const pause = status.pausedBecause === null ? '' : `\npaused: ${status.pausedBecause}`;
    const limits = Object.keys(status.budget?.limits ?? {}).length === 0 ? '' : `\n\n${budgetText(status.budget)}`;
    const named = await startedSet(stack, id, shortKey(key));
    const tasks = named === null ? '' : `\ntasks: ${showHidden(named)}`;
    return print(`${id}${tasks}\n${sweepProgress(status)}${pause}${limits}\n\n${costText(costs)}`);
  }
  const report = await sweepReportOf(stack, key);
  if (report === null) return showSweepWithoutReport(stack, known, json);
  const costs = costsOfLedger(report.result.cost.ledger, { ...report, ...report.result }, prices);
  if (json) printJson({ ...report, money: costs && moneyOf(costs) });
  else {
    const input = { ...report.input, tasks: await setName(stack, report.input.tasks) };
    print(showHidden(`${sweepText({ ...report, input })}\n\n${costText(costs)}`));
  }
}
