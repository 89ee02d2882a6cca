import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import type { KnownWorkflow } from '../../follow/find-known.ts';
import { isOpen } from '../../follow/find-workflow.ts';
import { workflowEnd } from '../../follow/workflow-end.ts';
import type { ReadableStack } from '../../stack/stack-client.ts';
import { print, printJson } from '../../text/output.ts';

/** Shows a group or a step by its record: the report of the group, or what the step did. */
export async function showRecorded(stack: ReadableStack, known: KnownWorkflow, json: boolean): Promise<void> {
  const { id, kind, key } = known;
  // A group by hand has the number 0.
  const [, name = 'group-0'] = /\/((?:group|step)-\d+)$/.exec(id) ?? [];
  const report = await stack.records.find(key, name);
  if (report === null) return showWithoutRecord(known, json);
  if (json) return printJson({ id, kind, report });
  print(`${id}\n${kind}`);
  print(showHidden(JSON.stringify(report, null, 2)));
}

/** Shows a workflow that has no report: its bare result, or why it has none. */
export async function showWithoutRecord({ id, kind, found }: KnownWorkflow, json: boolean): Promise<void> {
  if (found === null) {
    throw new Error(
      `the store has no report of the ${kind} ${id}: it still runs, or was terminated or failed; only a Temporal server that knows it can say more`,
    );
  }
  const { handle, description } = found;
  const status = description.status.name.toLowerCase();
  const result = isOpen(found)
    ? null
    : await handle.result().catch((error: unknown) => {
        const end = workflowEnd(error);
        if (end === null) throw error;
        return end;
      });
  if (json) return printJson({ id, kind, status, result });
  print(`${id}\n${kind}, ${status}, started ${description.startTime.toISOString()}`);
  if (result !== null) print(showHidden(JSON.stringify(result, null, 2)));
}
