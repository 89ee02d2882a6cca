import { isDeepStrictEqual } from 'node:util';
import { type Client, ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import { controlQueue } from '../workflows/contracts/queues.ts';

/** A schedule of temper's own: it starts a workflow of the same id at an interval, one at a time. */
export interface OwnSchedule {
  readonly scheduleId: string;
  readonly everyMs: number;
  readonly workflowType: string;
  readonly args: readonly unknown[];
  readonly summary: string;
  readonly memo?: Readonly<Record<string, unknown>>;
}

/** Creates a schedule, or changes one that another release has created otherwise; repeatable. A paused one remains paused. */
export async function ensureSchedule(client: Client, schedule: OwnSchedule): Promise<void> {
  const { scheduleId, memo } = schedule;
  const options = optionsOf(schedule);
  try {
    await client.schedule.create({ scheduleId, ...options, ...(memo !== undefined && { memo }) });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    const handle = client.schedule.getHandle(scheduleId);
    const { spec, policies, action } = await handle.describe();
    const { workflowType, taskQueue, args } = action;
    const every = spec.intervals?.map(({ every: ms }) => ms);
    const found = { every, policies, workflowType, taskQueue, args };
    if (!isDeepStrictEqual(found, wantedOf(schedule))) await handle.update(({ state }) => ({ ...options, state }));
  }
}

const optionsOf = ({ scheduleId, everyMs, workflowType, args, summary }: OwnSchedule) => ({
  spec: { intervals: [{ every: everyMs }] },
  policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: everyMs },
  action: {
    type: 'startWorkflow' as const,
    workflowType,
    workflowId: scheduleId,
    taskQueue: controlQueue,
    args: [...args],
    staticSummary: summary,
  },
});

/** The description by the server of a schedule that is as it should be. */
const wantedOf = ({ everyMs, workflowType, args }: OwnSchedule) => ({
  every: [everyMs],
  policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: everyMs, pauseOnFailure: false },
  workflowType,
  taskQueue: controlQueue,
  args: [...args],
});
