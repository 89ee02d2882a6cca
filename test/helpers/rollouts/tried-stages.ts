import type { Client } from '@temporalio/client';

/** A stage as the history of its rollout tells: one activity and how often it was tried. */
export interface TriedStage {
  readonly workflow: string;
  readonly stage: string;
  /** The number of the last activity attempt; 0 if the stage ended before any began. */
  readonly attempt: number;
  readonly scheduledAtMs: number;
  /** The failure of the activity attempt before the last one; empty if there was none. */
  readonly lastFailure: string;
}

/** Reads the stages of a rollout that has ended. */
export async function triedStages(client: Client, workflow: string): Promise<TriedStage[]> {
  const { events } = await client.workflow.getHandle(workflow).fetchHistory();
  const stages = new Map<string, TriedStage>();
  for (const { eventId, eventTime, ...event } of events ?? []) {
    const scheduled = event.activityTaskScheduledEventAttributes;
    const started = event.activityTaskStartedEventAttributes;
    if (scheduled) {
      const scheduledAtMs = Number(eventTime?.seconds ?? 0) * 1000 + (eventTime?.nanos ?? 0) / 1e6;
      const stage = scheduled.activityType?.name ?? '';
      stages.set(String(eventId), { workflow, stage, attempt: 0, scheduledAtMs, lastFailure: '' });
    }
    const known = started && stages.get(String(started.scheduledEventId));
    if (!known) continue;
    const { attempt, lastFailure } = started;
    stages.set(String(started.scheduledEventId), {
      ...known,
      attempt: attempt ?? 0,
      lastFailure: lastFailure?.message ?? '',
    });
  }
  return [...stages.values()];
}
