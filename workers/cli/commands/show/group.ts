import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import type { GroupSummary } from '../../../../workflows/contracts/group.ts';
import { type FoundWorkflow, isOpen } from '../../follow/find-workflow.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { print, printJson } from '../../text/output.ts';
import { factsOf, resultOrEnd, showResult } from './result.ts';

/** Shows a group: the report of a run's group is a record of the run, that of another is its result. */
export async function showGroup(stack: StackClient, found: FoundWorkflow, json: boolean): Promise<void> {
  const result = isOpen(found) ? null : ((await resultOrEnd(found)) as Partial<GroupSummary>);
  const { runKey, index } = result ?? {};
  const report = typeof runKey !== 'string' ? null : await stack.records.find(runKey, `group-${index}`);
  if (report === null) return showResult(stack, found, json);
  const { text, ...facts } = factsOf(found);
  if (json) return printJson({ ...facts, report });
  print(text);
  print(showHidden(JSON.stringify(report, null, 2)));
}
