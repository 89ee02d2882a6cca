import type { RegradeReport } from '../../../../workflows/contracts/regrade.ts';
import { findWorkflow } from '../../follow/find-workflow.ts';
import { findReport, type ReportPlace } from '../../follow/workflow-report.ts';

/** Of a regrade that has ended, also of a cancelled one; null while there is none. */
export async function findRegradeReport(stack: ReportPlace, id: string): Promise<RegradeReport | null> {
  const found = await findWorkflow(stack.client, id);
  if (found.kind !== 'regrade') throw new Error(`expected a regrade, got ${id}, which is a ${found.kind}`);
  return (await findReport(stack, found, 'regrade')) as RegradeReport | null;
}
