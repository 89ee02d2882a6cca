import type { Client } from '@temporalio/client';
import { scheduleMemo } from '../../workflows/contracts/schedule.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';

export interface FinishedStep {
  readonly run: string;
  readonly runKey: string;
  readonly step: number;
}

/**
 * Triggers the schedules that go by a run's steps instead of by a clock, where they are due after this one and not paused;
 * says which. Each once per run and step, however often it is tried: the server drops a request whose id it has seen.
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
      ...{ namespace, identity, scheduleId, requestId: `${runKey}/${step}/${scheduleId}` },
      patch: { triggerImmediately: {} },
    });
    triggered.push(scheduleId);
  }
  return triggered;
}
