import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { regradeStatusQuery } from '../../../../workflows/contracts/messages.ts';
import { type FoundWorkflow, isOpen } from '../../follow/find-workflow.ts';
import { findRegradeReport } from '../../follow/workflow-report.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { print, printJson } from '../../text/output.ts';
import { regradeText } from '../regrade/regrade-text.ts';
import { regradeProgress } from '../regrade/run-regrade.ts';
import { showResult } from './result.ts';

/** Shows a regrade: its progress, or its report once it has ended. */
export async function showRegrade(stack: StackClient, found: FoundWorkflow, json: boolean): Promise<void> {
  const { handle } = found;
  if (isOpen(found)) {
    const status = await handle.query(regradeStatusQuery);
    if (json) return printJson(status);
    const pause = status.pausedBecause === null ? '' : `\npaused: ${status.pausedBecause}`;
    return print(`${handle.workflowId}\n${regradeProgress(status)}${pause}`);
  }
  const report = await findRegradeReport(stack, handle.workflowId);
  if (report === null) return showResult(stack, found, json);
  if (json) printJson(report);
  else print(showHidden(regradeText(report)));
}
