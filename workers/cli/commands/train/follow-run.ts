import { setTimeout as sleep } from 'node:timers/promises';
import { findStep, type StepRecord } from '../../../../infra/report/run-records.ts';
import { runStatusQuery } from '../../../../workflows/contracts/messages.ts';
import type { RunStatus } from '../../../../workflows/contracts/run.ts';
import type { trainingRun } from '../../../../workflows/index.ts';
import { workflowEnd } from '../../follow/workflow-failure.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { live, note } from '../../text/output.ts';
import { progressText, stepText } from './progress-text.ts';
import { warmUpProgress } from './warm-up-progress.ts';

const POLL_MS = 500;

/** The follower was interrupted; the run is not. */
export class LetGo extends Error {
  readonly run: string;

  constructor(run: string) {
    super(`stopped following ${run}`);
    this.run = run;
  }
}

export interface Followed {
  /** Default: a line on stderr. */
  readonly onStep?: (step: StepRecord) => void;
  /** Told why the run paused, once per reason; may throw to give up. Default: a line on stderr. */
  readonly onPause?: (reason: string) => void;
}

/** Prints a line per finished step until the run ends. Throws when it ends without a result, and LetGo on an abort. */
export async function followRun(
  stack: StackClient,
  run: string,
  { onStep, onPause = (reason) => note(`paused: ${reason}`) }: Followed,
  signal: AbortSignal,
): Promise<RunStatus> {
  const handle = stack.client.workflow.getHandle<typeof trainingRun>(run);
  const end = handle.result().then(
    (status) => ({ status }),
    (error: unknown) => ({ error }),
  );
  const steps = stepPrinter(stack, onStep);
  let reason: string | null = null;
  for (;;) {
    const ended = await Promise.race([end, sleep(POLL_MS, null, { signal }).catch(() => 'aborted' as const)]);
    if (ended === 'aborted') break;
    // A query fails while no control worker is up; the run goes on meanwhile, and so does this loop.
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
    if (status.pausedBecause !== null && status.pausedBecause !== reason) onPause(status.pausedBecause);
    reason = status.pausedBecause;
  }
  live('');
  throw new LetGo(run);
}

function stepPrinter({ records }: StackClient, onStep: ((step: StepRecord) => void) | undefined) {
  let printed = 0;
  let since = Date.now();
  return {
    async print({ runKey, step, steps }: RunStatus): Promise<void> {
      while (printed < step) {
        const record = await findStep(records, runKey, printed + 1);
        if (record === null) return; // on a host whose records are elsewhere there is none
        printed += 1;
        if (onStep === undefined) note(stepText(record, steps, (record.recordedAt - since) / 1000));
        else onStep(record);
        since = record.recordedAt;
      }
    },
  };
}
