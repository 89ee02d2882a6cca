import { ActivityFailure, isCancellation, log, proxyActivities, TimeoutFailure } from '@temporalio/workflow';
import { z } from 'zod';
import type { ControlActivities } from '../activities/interfaces/control.ts';
import type { ReaperActivities } from '../activities/interfaces/host.ts';
import { control as asking } from './activities.ts';
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
  /** Whether the host is lost. The rollouts that it had know it by then. */
  readonly hostLost?: true;
}

/**
 * Removes sandboxes of rollouts that have ended, cancels groups and rollouts whose run or sweep is closed, and pauses runs while
 * the disk is nearly full. Each host's schedule starts it, and it notices when the host is lost.
 */
export async function reaper(request: { readonly host: string }): Promise<ReaperResult> {
  const { host } = parseInput('reaper', reaperInput, request);
  const onHost = proxyActivities<ReaperActivities>({ taskQueue: hostQueue(host), ...timeouts.reapHost });
  await guardDisk();
  const { groups, rollouts } = await control.cancelOrphans();
  try {
    const { removed, images, suspected } = await onHost.reapSandboxes();
    return { sandboxes: removed, suspected, images, groups, rollouts };
  } catch (error) {
    if (!neverStarted(error)) throw error;
    const { alive } = await asking.inspectHost({ host });
    if (alive) throw error;
    return { sandboxes: [], suspected: [], images: [], groups, rollouts, hostLost: true };
  }
}

/** Whether no worker of the host took the activity in time. */
const neverStarted = (error: unknown): boolean =>
  error instanceof ActivityFailure &&
  error.cause instanceof TimeoutFailure &&
  error.cause.timeoutType === 'SCHEDULE_TO_START';

/** Pauses and resumes runs by the free space of the disk. A failure does not keep the reaper from its own work. */
async function guardDisk(): Promise<void> {
  try {
    await control.guardDisk();
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn('could not pause or resume by the free space of the disk', { error: rootMessage(error) });
  }
}
