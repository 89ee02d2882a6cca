import { z } from 'zod';
import type { SweepReport } from '../../../workflows/contracts/sweep.ts';
import { findWorkflow } from '../find-workflow.ts';
import type { StackClient } from '../stack-client.ts';

const recorded = z.object({ report: z.object({ digest: z.string() }) });

/** Of a sweep that has ended, also of a cancelled one; null while there is none. */
export async function findSweepReport(
  { client, records, store }: Pick<StackClient, 'client' | 'records' | 'store'>,
  id: string,
): Promise<SweepReport | null> {
  const { kind, description } = await findWorkflow(client, id);
  if (kind !== 'evaluationSweep') throw new Error(`expected an evaluation sweep, got ${id}, which is a ${kind}`);
  const { firstRunId } = description.raw.workflowExecutionInfo ?? {};
  const record = await records.find(firstRunId ?? description.runId, 'sweep');
  const found = recorded.safeParse(record);
  return found.success ? ((await store.getJson(found.data.report.digest)) as SweepReport) : null;
}

/** As above; throws with what to do where there is none. */
export async function readSweepReport(
  stack: Pick<StackClient, 'client' | 'records' | 'store'>,
  id: string,
): Promise<SweepReport> {
  const report = await findSweepReport(stack, id);
  if (report !== null) return report;
  throw new Error(`expected a sweep that has ended, got ${id}, which has no report yet; see \`temper show ${id}\``);
}
