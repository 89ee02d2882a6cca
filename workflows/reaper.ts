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
  // None waits for another: the list of workflows may be away while the host and the rest of the server work.
  const [reaped, orphans = { groups: [], rollouts: [] }] = await Promise.all([
    reap(host),
    unlessFailed('cancel groups and rollouts without a run', control.cancelOrphans()),
    unlessFailed('pause or resume by the free space of the disk', control.guardDisk()),
  ]);
  if ('error' in reaped) throw reaped.error;
  return { ...reaped, ...orphans };
}

type Reaped = Pick<ReaperResult, 'sandboxes' | 'suspected' | 'images' | 'hostLost'>;

/** Reaps on a host. An error is returned, so that it does not end what runs beside it. */
async function reap(host: string): Promise<Reaped | { readonly error: unknown }> {
  const onHost = proxyActivities<ReaperActivities>({ taskQueue: hostQueue(host), ...timeouts.reapHost });
  try {
    const { removed, images, suspected } = await onHost.reapSandboxes();
    return { sandboxes: removed, suspected, images };
  } catch (error) {
    if (!neverStarted(error)) return { error };
    try {
      const { alive } = await asking.inspectHost({ host });
      return alive ? { error } : { sandboxes: [], suspected: [], images: [], hostLost: true };
    } catch (unknown) {
      return { error: unknown };
    }
  }
}

/** Whether no worker of the host took the activity in time. */
const neverStarted = (error: unknown): boolean =>
  error instanceof ActivityFailure &&
  error.cause instanceof TimeoutFailure &&
  error.cause.timeoutType === 'SCHEDULE_TO_START';

/** Returns the result of a part of the reaper, or undefined if it failed, which the next look makes good. */
async function unlessFailed<Result>(what: string, work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn(`could not ${what}; the reaper tries again in a minute`, { error: rootMessage(error) });
    return undefined;
  }
}
