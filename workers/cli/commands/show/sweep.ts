import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { sweepStatusQuery } from '../../../../workflows/contracts/messages.ts';
import { type FoundWorkflow, isOpen } from '../../follow/find-workflow.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { print, printJson } from '../../text/output.ts';
import { findSweepReport } from '../eval/find-report.ts';
import { progressText } from '../eval/run-sweep.ts';
import { sweepText } from '../eval/sweep-text.ts';
import { showOther } from './other.ts';

/** A sweep: where it is, or all that it found. */
export async function showSweep(stack: StackClient, found: FoundWorkflow, json: boolean): Promise<void> {
  const { handle } = found;
  if (isOpen(found)) {
    const status = await handle.query(sweepStatusQuery);
    if (json) return printJson(status);
    const pause = status.pausedBecause === null ? '' : `\npaused: ${status.pausedBecause}`;
    return print(`${handle.workflowId}\n${progressText(status)}${pause}`);
  }
  const report = await findSweepReport(stack, handle.workflowId);
  // It failed, or an older worker began it.
  if (report === null) return showOther(found, json);
  if (json) printJson(report);
  else print(showHidden(sweepText(report)));
}
