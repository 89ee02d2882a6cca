import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { type FoundWorkflow, isOpen } from '../../follow/find-workflow.ts';
import { workflowEnd } from '../../follow/workflow-failure.ts';
import { print, printJson } from '../../text/output.ts';

/** A group, a step, or a sweep without a report: its result as it is. */
export async function showOther(found: FoundWorkflow, json: boolean): Promise<void> {
  const { handle, kind, description } = found;
  const facts = { id: handle.workflowId, kind, status: description.status.name.toLowerCase() };
  const result = isOpen(found) ? null : await ending(found);
  if (json) return printJson({ ...facts, result });
  print(`${facts.id}\n${kind}, ${facts.status}, started ${description.startTime.toISOString()}`);
  if (result !== null) print(showHidden(JSON.stringify(result, null, 2)));
}

async function ending({ handle }: FoundWorkflow): Promise<unknown> {
  try {
    return await handle.result();
  } catch (error) {
    const end = workflowEnd(error);
    if (end === null) throw error;
    return end;
  }
}
