import { findRunEnd } from '../../../infra/report/run-records.ts';
import { runStatusQuery } from '../../../workflows/contracts/messages.ts';
import type { RunStatus } from '../../../workflows/contracts/run.ts';
import type { WorkflowEnd } from '../../../workflows/contracts/workflow-end.ts';
import type { ReadableStack } from '../stack/stack-client.ts';
import type { KnownWorkflow } from './find-known.ts';
import { isOpen } from './find-workflow.ts';
import { endOf } from './workflow-end.ts';

/** The state of a run, and how it ended. */
export interface RunState {
  /** Null if the run has no record of its end and the server does not know it. */
  readonly status: RunStatus | null;
  /** The reason why it has no result; null if it has one, or runs. */
  readonly end: WorkflowEnd | null;
  readonly isRunning: boolean;
  readonly workflowStatus: string | null;
  readonly endedAt: number | null;
}

/** The status of a workflow with such an end, as the Temporal server names it. */
const statusOf = { cancelled: 'CANCELLED', terminated: 'TERMINATED', refused: 'FAILED', failed: 'FAILED' } as const;

/** Reads the state of a run: that of one that has ended from its record, and of another one from the server. */
export async function readRunState({ records }: ReadableStack, { key, found }: KnownWorkflow): Promise<RunState> {
  if (found !== null && isOpen(found)) {
    const status = await found.handle.query(runStatusQuery);
    return { status, end: null, isRunning: true, workflowStatus: 'RUNNING', endedAt: null };
  }
  const recorded = await findRunEnd(records, key);
  if (recorded !== null) {
    const workflowStatus = recorded.end === null ? 'COMPLETED' : statusOf[recorded.end.kind];
    return { ...recorded, isRunning: false, workflowStatus };
  }
  if (found === null) return { status: null, end: null, isRunning: false, workflowStatus: null, endedAt: null };
  // It was terminated or refused. A closed run answers queries, too, as long as a control worker is up.
  const end = await endOf(found.handle);
  const status = end?.kind === 'refused' ? null : await found.handle.query(runStatusQuery);
  const { closeTime, status: closed } = found.description;
  return { status, end, isRunning: false, workflowStatus: closed.name, endedAt: closeTime?.getTime() ?? null };
}
