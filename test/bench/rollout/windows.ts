import type { Client } from '@temporalio/client';

/** The time in which a stage of a rollout was with the server or a worker, by the rollout's history. */
export interface StageWindow {
  readonly stage: string;
  /** The time at which the server recorded that the stage is to run. */
  readonly scheduledMs: number;
  /** The time at which a worker took the stage. */
  readonly startedMs: number;
  readonly endedMs: number;
}

/** Reads the windows of a rollout's stages, in the order in which they ended. */
export async function stageWindows(client: Client, workflowId: string): Promise<readonly StageWindow[]> {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const open = new Map<string, Omit<StageWindow, 'endedMs'>>();
  const windows: StageWindow[] = [];
  for (const event of events ?? []) {
    const atMs = Number(event.eventTime?.seconds ?? 0) * 1000 + (event.eventTime?.nanos ?? 0) / 1e6;
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled) {
      const stage = scheduled.activityType?.name ?? '?';
      open.set(String(event.eventId), { stage, scheduledMs: atMs, startedMs: atMs });
    }
    const started = event.activityTaskStartedEventAttributes;
    const begun = open.get(String(started?.scheduledEventId));
    if (begun) open.set(String(started?.scheduledEventId), { ...begun, startedMs: atMs });
    const ended = open.get(String(event.activityTaskCompletedEventAttributes?.scheduledEventId));
    if (ended) windows.push({ ...ended, endedMs: atMs });
  }
  return windows;
}
