import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { type FoundWorkflow, isOpen } from '../../follow/find-workflow.ts';
import { workflowEnd } from '../../follow/workflow-end.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { print, printJson } from '../../text/output.ts';

/** Shows a step, or a workflow without a report: its bare result. */
export async function showResult(_stack: StackClient, found: FoundWorkflow, json: boolean): Promise<void> {
  const { text, ...facts } = factsOf(found);
  const result = isOpen(found) ? null : await resultOrEnd(found);
  if (json) return printJson({ ...facts, result });
  print(text);
  if (result !== null) print(showHidden(JSON.stringify(result, null, 2)));
}

/** The facts of a workflow, with the same as text. */
export function factsOf({ handle, kind, description }: FoundWorkflow) {
  const { workflowId: id } = handle;
  const status = description.status.name.toLowerCase();
  return { id, kind, status, text: `${id}\n${kind}, ${status}, started ${description.startTime.toISOString()}` };
}

export async function resultOrEnd({ handle }: FoundWorkflow): Promise<unknown> {
  try {
    return await handle.result();
  } catch (error) {
    const end = workflowEnd(error);
    if (end === null) throw error;
    return end;
  }
}
