import { proxyActivities } from '@temporalio/workflow';
import { z } from 'zod';
import type { ControlActivities } from '../activities/interfaces/control.ts';
import type { ReaperActivities } from '../activities/interfaces/host.ts';
import { timeouts } from './activity-options.ts';
import { parseInput, text } from './contracts/input.ts';
import { controlQueue, hostQueue } from './contracts/queues.ts';

const control = proxyActivities<Pick<ControlActivities, 'cancelOrphans'>>({
  taskQueue: controlQueue,
  ...timeouts.reap,
});

const reaperInput = z.strictObject({ host: text('the name of a host, as its queue temper-host-<name> has it') });

export interface ReaperResult {
  readonly sandboxes: readonly string[];
  readonly images: readonly string[];
  readonly groups: readonly string[];
  readonly rollouts: readonly string[];
}

/** Removes sandboxes of rollouts that have ended, and cancels groups and rollouts whose run or sweep is closed. Each host's schedule starts it. */
export async function reaper(request: { readonly host: string }): Promise<ReaperResult> {
  const { host } = parseInput('reaper', reaperInput, request);
  const onHost = proxyActivities<ReaperActivities>({ taskQueue: hostQueue(host), ...timeouts.reapHost });
  const { groups, rollouts } = await control.cancelOrphans();
  const { removed, images } = await onHost.reapSandboxes();
  return { sandboxes: removed, images, groups, rollouts };
}
