import { type Client, ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import { controlQueue } from '../../workflows/contracts/queues.ts';

/** The longest time that a leaked sandbox outlives its rollout. */
const every = '1m';

/** Creates the schedule of a host's reaper; repeatable. */
export async function scheduleReaper(client: Client, host: string): Promise<void> {
  try {
    await client.schedule.create({
      scheduleId: `temper-reaper-${host}`,
      spec: { intervals: [{ every }] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: every },
      action: {
        type: 'startWorkflow',
        workflowType: 'reaper',
        workflowId: `temper-reaper-${host}`,
        taskQueue: controlQueue,
        args: [{ host }],
        staticSummary: `removes what dead rollouts left on ${host}`,
      },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}
