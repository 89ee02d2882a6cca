import { toAtif } from '../../../../infra/report/atif.ts';
import { readTrace } from '../../../../infra/report/read-trace.ts';
import type { RolloutResult } from '../../../../workflows/contracts/rollout.ts';
import { type FoundWorkflow, isOpen } from '../../follow/find-workflow.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { printJson } from '../../text/output.ts';

/** Prints the trajectory of a rollout that has ended. */
export async function showTrace(stack: StackClient, found: FoundWorkflow): Promise<void> {
  const { handle, kind } = found;
  if (kind !== 'rollout') throw new Error(`--trace: expected a rollout, got ${handle.workflowId}, which is a ${kind}`);
  if (isOpen(found))
    throw new Error(`--trace: expected a rollout that has ended, got ${handle.workflowId}, which runs`);
  const result = (await handle.result()) as RolloutResult;
  if (result.trace === null) {
    throw new Error(`--trace: ${handle.workflowId} has no trace: ${result.agent} called no model, or it ended before`);
  }
  printJson(toAtif(result, await readTrace(stack.store, result.trace.trace.digest)));
}
