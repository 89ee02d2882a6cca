import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { type FoundWorkflow, isOpen } from '../../follow/find-workflow.ts';
import { workflowEnd } from '../../follow/workflow-end.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { print, printJson } from '../../text/output.ts';

/** Shows a group, a step, or a workflow without a report: its bare result. */
export async function showResult(_stack: StackClient, found: FoundWorkflow, json: boolean): Promise<void> {
  const { handle, kind, description } = found;
  const facts = { id: handle.workflowId, kind, status: description.status.name.toLowerCase() };
  const result = isOpen(found) ? null : await resultOrEnd(found);
  if (json) return printJson({ ...facts, result });
  print(`${facts.id}\n${kind}, ${facts.status}, started ${description.startTime.toISOString()}`);
  if (result !== null) print(showHidden(JSON.stringify(result, null, 2)));
}

async function resultOrEnd({ handle }: FoundWorkflow): Promise<unknown> {
  try {
    return await handle.result();
  } catch (error) {
    const end = workflowEnd(error);
    if (end === null) throw error;
    return end;
  }
}
