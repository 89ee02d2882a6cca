import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import type { WarmUpProgress } from '../../../../activities/interfaces/trainer.ts';
import { findStep, type StepRecord } from '../../../../infra/report/run-records.ts';
import { slowQuarterWarning } from '../../../../workflows/algorithms/group-durations.ts';
import { risingText } from '../../../../workflows/algorithms/rising-tricks.ts';
import { runStatusQuery } from '../../../../workflows/contracts/messages.ts';
import type { RunStatus } from '../../../../workflows/contracts/run.ts';
import type { trainingRun } from '../../../../workflows/index.ts';
import { workflowEnd } from '../../follow/workflow-end.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { live, note } from '../../text/output.ts';
import { progressText, stepText } from './progress-text.ts';

const pollMs = 500;

/** The command was interrupted while it followed a run; the run continues. */
export class StoppedFollowing extends Error {
  readonly run: string;

  constructor(run: string) {
    super(`stopped following ${run}`);
    this.run = run;
  }
}

export interface FollowHooks {
  /** Receives each finished step. Default: prints a line to stderr. */
  readonly onStep?: (step: StepRecord) => void;
  /** Receives the reason of each pause once; may throw to stop following. Default: prints a line to stderr. */
  readonly onPause?: (reason: string) => void;
}

/**
 * Prints a line per finished step until the run ends. Throws if it ends without a result, and StoppedFollowing on an
 * abort.
 */
export async function followRun(
  stack: StackClient,
  run: string,
  { onStep, onPause = (reason) => note(`paused: ${reason} (\`temper resume ${run}\`)`) }: FollowHooks,
  signal: AbortSignal,
): Promise<RunStatus> {
  const handle = stack.client.workflow.getHandle<typeof trainingRun>(run);
  const end = handle.result().then(
    (status) => ({ status }),
    (error: unknown) => ({ error }),
  );
  const steps = stepPrinter(stack, onStep);
  let reason: string | null = null;
  const warned = new Set<string>();
  for (;;) {
    const ended = await Promise.race([end, sleep(pollMs, null, { signal }).catch(() => 'aborted' as const)]);
    if (ended === 'aborted') break;
    // A query fails while no control worker is up. The run continues meanwhile, and so does this loop.
    const status =
      ended !== null && 'status' in ended ? ended.status : await handle.query(runStatusQuery).catch(() => null);
    if (status !== null) await steps.print(status);
    if (ended !== null) {
      live('');
      if ('status' in ended) return ended.status;
      const why = workflowEnd(ended.error);
      throw why === null ? ended.error : new Error(`run ${run} ended as ${why.kind}: ${why.message}`);
    }
    if (status === null) continue;
    const preparing = status.phase === 'preparing' ? await warmUpProgress(handle).catch(() => null) : null;
    live(progressText(status, preparing));
    const bias = slowQuarterWarning(status.durations);
    const warnings = [
      ...status.rising.map((rising) => [rising.trick, risingText(rising)] as const),
      ...(bias === null ? [] : [['slow quarter', bias] as const]),
    ];
    for (const [kind, text] of warnings) {
      if (!warned.has(kind)) note(`warning: ${text}`);
      warned.add(kind);
    }
    if (status.pausedBecause !== null && status.pausedBecause !== reason) onPause(status.pausedBecause);
    reason = status.pausedBecause;
  }
  live('');
  throw new StoppedFollowing(run);
}

function stepPrinter({ records }: StackClient, onStep: ((step: StepRecord) => void) | undefined) {
  let printed = 0;
  let since = Date.now();
  return {
    async print({ runKey, step, steps }: RunStatus): Promise<void> {
      while (printed < step) {
        const record = await findStep(records, runKey, printed + 1);
        if (record === null) return; // the records are on another host
        printed += 1;
        if (onStep === undefined) note(stepText(record, steps, (record.recordedAt - since) / 1000));
        else onStep(record);
        since = record.recordedAt;
      }
    },
  };
}

/** Reads how far the warm-up of a run is from the heartbeats of its activity; null if no warm-up is in progress. */
export async function warmUpProgress(run: Pick<WorkflowHandle, 'describe'>): Promise<WarmUpProgress | null> {
  const { raw } = await run.describe();
  const preparing = raw.pendingActivities?.find(({ activityType }) => activityType?.name === 'prepareTrainer');
  const payload = preparing?.heartbeatDetails?.payloads?.[0];
  if (payload === undefined) return null;
  // Heartbeats before the first step carry no progress.
  return defaultPayloadConverter.fromPayload<WarmUpProgress | undefined>(payload) ?? null;
}
