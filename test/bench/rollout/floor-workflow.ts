import { proxyActivities } from '@temporalio/workflow';
import type { EmptyActivities } from './floor.ts';

const { empty } = proxyActivities<EmptyActivities>({ startToCloseTimeout: '1 minute' });

/** Runs activities that do nothing, one after another. */
export async function emptyStages(stages: number): Promise<void> {
  for (let stage = 0; stage < stages; stage += 1) await empty();
}
