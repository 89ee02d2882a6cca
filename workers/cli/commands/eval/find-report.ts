import type { SweepReport } from '../../../../workflows/contracts/sweep.ts';
import { findWorkflow } from '../../follow/find-workflow.ts';
import { findReport, type ReportPlace } from '../../follow/workflow-report.ts';

/** Of a sweep that has ended, also of a cancelled one; null while there is none. */
export async function findSweepReport(stack: ReportPlace, id: string): Promise<SweepReport | null> {
  const found = await findWorkflow(stack.client, id);
  if (found.kind !== 'evaluationSweep') {
    throw new Error(`expected an evaluation sweep, got ${id}, which is a ${found.kind}`);
  }
  return (await findReport(stack, found, 'sweep')) as SweepReport | null;
}

/** As above; throws with what to do where there is none. */
export async function readSweepReport(stack: ReportPlace, id: string): Promise<SweepReport> {
  const report = await findSweepReport(stack, id);
  if (report !== null) return report;
  throw new Error(`expected a sweep that has ended, got ${id}, which has no report yet; see \`temper show ${id}\``);
}
