import { findReportOf } from '../../../infra/report/run-records.ts';
import type { RegradeReport } from '../../../workflows/contracts/regrade.ts';
import type { SweepReport } from '../../../workflows/contracts/sweep.ts';
import type { ReadableStack } from '../stack/stack-client.ts';
import { findKnown, requireKind } from './find-known.ts';

/** Reads the report of a sweep that has ended or was cancelled; null while there is none. */
export async function findSweepReport(stack: ReadableStack, id: string): Promise<SweepReport | null> {
  const { key } = requireKind(await findKnown(stack, id), 'evaluationSweep', 'an evaluation sweep');
  return sweepReportOf(stack, key);
}

/** Reads the report of a sweep. Throws if it has none yet. */
export async function readSweepReport(stack: ReadableStack, id: string): Promise<SweepReport> {
  const report = await findSweepReport(stack, id);
  if (report !== null) return report;
  throw new Error(`${id} has no report: it still runs, or was terminated or failed; see \`temper show ${id}\``);
}

/** Reads the report of a regrade that has ended or was cancelled; null while there is none. */
export async function findRegradeReport(stack: ReadableStack, id: string): Promise<RegradeReport | null> {
  const { key } = requireKind(await findKnown(stack, id), 'regrade', 'a regrade');
  return regradeReportOf(stack, key);
}

/** The parts of a stack that reports are read from. */
type ReportSource = Pick<ReadableStack, 'records' | 'store'>;

/** Reads the report of a sweep by its key; null while there is none. */
export const sweepReportOf = async (source: ReportSource, key: string): Promise<SweepReport | null> =>
  (await readReport(source, key, 'sweep')) as SweepReport | null;

/** Reads the report of a regrade by its key; null while there is none. */
export const regradeReportOf = async (source: ReportSource, key: string): Promise<RegradeReport | null> =>
  (await readReport(source, key, 'regrade')) as RegradeReport | null;

async function readReport({ records, store }: ReportSource, key: string, name: 'sweep' | 'regrade'): Promise<unknown> {
  const digest = await findReportOf(records, key, name);
  return digest === null ? null : store.getJson(digest);
}
