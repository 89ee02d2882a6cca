import type { WorkflowHandle } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import type { WarmUpProgress } from '../../../../activities/interfaces/trainer.ts';

/** How far a run's warm-up is, by the heartbeats of the stage that makes it; null when none is under way. */
export async function warmUpProgress(run: Pick<WorkflowHandle, 'describe'>): Promise<WarmUpProgress | null> {
  const { raw } = await run.describe();
  const preparing = raw.pendingActivities?.find(({ activityType }) => activityType?.name === 'prepareTrainer');
  const payload = preparing?.heartbeatDetails?.payloads?.[0];
  if (payload === undefined) return null;
  // Heartbeats before the first step say nothing.
  return defaultPayloadConverter.fromPayload<WarmUpProgress | undefined>(payload) ?? null;
}
