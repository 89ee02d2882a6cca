import type { Client } from '@temporalio/client';
import { triggerStepSchedules } from '../../infra/temporal/step-schedules.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

/** Creates the activity that triggers the schedules that follow a run's steps. */
export function createScheduleActivities(client: Client): Pick<ControlActivities, 'triggerSchedules'> {
  return {
    triggerSchedules: (finished) =>
      atBoundary(async () => ({ triggered: await triggerStepSchedules(client, finished) })),
  };
}
