import { z } from 'zod';
import type { StackClient } from '../stack/stack-client.ts';
import type { FoundWorkflow } from './find-workflow.ts';

export type ReportPlace = Pick<StackClient, 'client' | 'records' | 'store'>;

const recorded = z.object({ report: z.object({ digest: z.string() }) });

/** The report that a workflow has left under this name; null while there is none. */
export async function findReport(
  { records, store }: Pick<ReportPlace, 'records' | 'store'>,
  { description }: FoundWorkflow,
  name: 'sweep' | 'regrade',
): Promise<unknown> {
  const { firstRunId } = description.raw.workflowExecutionInfo ?? {};
  const found = recorded.safeParse(await records.find(firstRunId ?? description.runId, name));
  return found.success ? store.getJson(found.data.report.digest) : null;
}
