import { isCancellation, log, patched, proxyActivities } from '@temporalio/workflow';
import { z } from 'zod';
import type { ControlActivities } from '../activities/interfaces/control.ts';
import type { ReaperActivities } from '../activities/interfaces/host.ts';
import { timeouts } from './activity-options.ts';
import { rootMessage } from './contracts/error-message.ts';
import { parseInput, text } from './contracts/input.ts';
import { controlQueue, hostQueue } from './contracts/queues.ts';

const control = proxyActivities<Pick<ControlActivities, 'cancelOrphans' | 'guardDisk'>>({
  taskQueue: controlQueue,
  ...timeouts.reap,
});

const reaperInput = z.strictObject({ host: text('the name of a host, as its queue temper-host-<name> has it') });

export interface ReaperResult {
  readonly sandboxes: readonly string[];
  /** Sandboxes that look orphaned for the first time; the next look removes them. */
  readonly suspected: readonly string[];
  readonly images: readonly string[];
  readonly groups: readonly string[];
  readonly rollouts: readonly string[];
}

/**
 * Removes sandboxes of rollouts that have ended, cancels groups and rollouts whose run or sweep is closed, and pauses runs while
 * the disk is nearly full. Each host's schedule starts it.
 */
export async function reaper(request: { readonly host: string }): Promise<ReaperResult> {
  const { host } = parseInput('reaper', reaperInput, request);
  const onHost = proxyActivities<ReaperActivities>({ taskQueue: hostQueue(host), ...timeouts.reapHost });
  if (patched('guard-disk')) await guardDisk();
  const { groups, rollouts } = await control.cancelOrphans();
  const { removed, images, suspected = [] } = await onHost.reapSandboxes();
  return { sandboxes: removed, suspected, images, groups, rollouts };
}

/** Pauses and resumes runs by the free space of the disk. A failure does not keep the reaper from its own work. */
async function guardDisk(): Promise<void> {
  try {
    await control.guardDisk();
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn('could not pause or resume by the free space of the disk', { error: rootMessage(error) });
  }
}
