import { z } from 'zod';
import type { RegradeReport } from '../../../workflows/contracts/regrade.ts';
import type { SweepReport } from '../../../workflows/contracts/sweep.ts';
import type { StackClient } from '../stack/stack-client.ts';
import { type FoundWorkflow, findWorkflow } from './find-workflow.ts';

/** The parts of a stack that reports are read from. */
export type ReportSource = Pick<StackClient, 'client' | 'records' | 'store'>;

const recorded = z.object({ report: z.object({ digest: z.string() }) });

/** Reads the report of a sweep that has ended or was cancelled; null while there is none. */
export async function findSweepReport(source: ReportSource, id: string): Promise<SweepReport | null> {
  const found = await findWorkflow(source.client, id);
  if (found.kind !== 'evaluationSweep') {
    throw new Error(`${id} is a ${found.kind}; expected an evaluation sweep`);
  }
  return (await findReport(source, found, 'sweep')) as SweepReport | null;
}

/** Reads the report of a sweep. Throws if it has none yet. */
export async function readSweepReport(source: ReportSource, id: string): Promise<SweepReport> {
  const report = await findSweepReport(source, id);
  if (report !== null) return report;
  throw new Error(`${id} has no report yet; wait until the sweep has ended: see \`temper show ${id}\``);
}

/** Reads the report of a regrade that has ended or was cancelled; null while there is none. */
export async function findRegradeReport(source: ReportSource, id: string): Promise<RegradeReport | null> {
  const found = await findWorkflow(source.client, id);
  if (found.kind !== 'regrade') throw new Error(`${id} is a ${found.kind}; expected a regrade`);
  return (await findReport(source, found, 'regrade')) as RegradeReport | null;
}

async function findReport(
  { records, store }: ReportSource,
  { description }: FoundWorkflow,
  name: 'sweep' | 'regrade',
): Promise<unknown> {
  const { firstRunId } = description.raw.workflowExecutionInfo ?? {};
  const found = recorded.safeParse(await records.find(firstRunId ?? description.runId, name));
  return found.success ? store.getJson(found.data.report.digest) : null;
}
