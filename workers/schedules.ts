import { type Client, ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import type { Duration } from '@temporalio/common';
import { controlQueue } from '../workflows/contracts/queues.ts';

/** A schedule of temper's own: it starts a workflow of the same id at an interval, one at a time. */
export interface OwnSchedule {
  readonly scheduleId: string;
  readonly every: Duration;
  readonly workflowType: string;
  readonly args: readonly unknown[];
  readonly summary: string;
  readonly memo?: Readonly<Record<string, unknown>>;
}

/** Creates a schedule; repeatable. */
export async function ensureSchedule(client: Client, schedule: OwnSchedule): Promise<void> {
  const { scheduleId, every, workflowType, args, summary, memo } = schedule;
  try {
    await client.schedule.create({
      scheduleId,
      spec: { intervals: [{ every }] },
      ...(memo !== undefined && { memo }),
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: every },
      action: {
        type: 'startWorkflow',
        workflowType,
        workflowId: scheduleId,
        taskQueue: controlQueue,
        args: [...args],
        staticSummary: summary,
      },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}
