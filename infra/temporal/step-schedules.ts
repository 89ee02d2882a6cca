import type { Client } from '@temporalio/client';
import { scheduleMemo } from '../../workflows/contracts/schedule.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';

export interface FinishedStep {
  readonly run: string;
  readonly runKey: string;
  readonly step: number;
}

/**
 * Triggers the unpaused schedules that are due after this step of a run, and returns their ids. Each is triggered once per run and
 * step, however often this is repeated, since the server drops a request whose id it has seen.
 */
export async function triggerStepSchedules(
  client: Client,
  { run, runKey, step }: FinishedStep,
): Promise<readonly string[]> {
  const { namespace, identity } = client.options;
  const triggered: string[] = [];
  const query = `${searchAttributes.run.name} = "${run.replaceAll('"', '\\"')}"`;
  for await (const { scheduleId, memo, state } of client.schedule.list({ query })) {
    const parsed = scheduleMemo.safeParse(memo);
    const every = parsed.success && parsed.data.run === run ? parsed.data.everySteps : null;
    if (every === null || step % every !== 0 || state.paused) continue;
    await client.workflowService.patchSchedule({
      namespace,
      identity,
      scheduleId,
      requestId: `${runKey}/${step}/${scheduleId}`,
      patch: { triggerImmediately: {} },
    });
    triggered.push(scheduleId);
  }
  return triggered;
}
