import { workflowInfo } from '@temporalio/workflow';

/** `historyEvents` is heeded once something has ended here, so that a bound below what a start takes still lets it go on. */
export function timeToContinueAsNew(historyEvents: number, ended: number): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return continueAsNewSuggested || (ended > 0 && historyEvents > 0 && historyLength >= historyEvents);
}
