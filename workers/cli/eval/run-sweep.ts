import { setTimeout as sleep } from 'node:timers/promises';
import { sweepStatusQuery } from '../../../workflows/contracts/messages.ts';
import type { SweepStatus } from '../../../workflows/contracts/sweep.ts';
import type { evaluationSweep } from '../../../workflows/index.ts';
import { type HomeOption, runningConfigOf } from '../command.ts';
import { Interrupted } from '../errors.ts';
import { onInterrupt } from '../interrupt.ts';
import { live, note, print, printJson } from '../output.ts';
import type { StackClient } from '../stack-client.ts';
import { workflowEnd } from '../workflow-failure.ts';
import { findSweepReport } from './find-report.ts';
import { type SweepOptions, sweepRequestOf } from './sweep-options.ts';
import { sweepText } from './sweep-text.ts';

export interface EvalOptions extends HomeOption, SweepOptions {
  readonly id?: string;
  readonly detach?: true;
  readonly json?: true;
}

const pollMs = 500;

/** Starts a sweep and waits for its result. The first Ctrl-C cancels it and waits for its clean-up. */
export async function runSweep(options: EvalOptions): Promise<void> {
  const request = await sweepRequestOf(options);
  const { openStackClient } = await import('../stack-client.ts');
  const { startSweep } = await import('../start-workflow.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  const interrupt = onInterrupt('cancelling the sweep; waiting until its rollouts have cleaned up');
  try {
    const id = options.id ?? `eval-${new Date().toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')}`;
    const handle = await startSweep(stack.client, id, request);
    note(`started ${id}`);
    if (options.detach) {
      if (options.json) printJson({ sweep: id, sweepKey: handle.firstExecutionRunId });
      else print(id);
      return;
    }
    interrupt.remains(() => `${id} goes on; end it with \`temper cancel ${id}\``);
    const cancel = (): void => void handle.cancel().catch(() => undefined); // it may have ended in this moment
    if (interrupt.signal.aborted) cancel();
    interrupt.signal.addEventListener('abort', cancel, { once: true });
    await untilEnded(stack, id);
    const report = await findSweepReport(stack, id);
    if (report !== null) {
      if (options.json) printJson({ id, ...report.result });
      else print(sweepText(report));
    }
    if (interrupt.signal.aborted)
      throw new Interrupted(`interrupted: ${id} was cancelled, all of its rollouts have ended`);
  } finally {
    interrupt.release();
    await stack.close();
  }
}

/** Shows where the sweep is until it ends. Throws when it ends otherwise than by its result or a cancel. */
async function untilEnded({ client }: StackClient, id: string): Promise<void> {
  const handle = client.workflow.getHandle<typeof evaluationSweep>(id);
  const end = handle.result().then(
    () => ({ error: null }),
    (error: unknown) => ({ error }),
  );
  let reason: string | null = null;
  for (;;) {
    const ended = await Promise.race([end, sleep(pollMs, null)]);
    if (ended !== null) {
      live('');
      const why = ended.error === null ? null : workflowEnd(ended.error);
      if (ended.error !== null && why === null) throw ended.error;
      if (why !== null && why.kind !== 'cancelled') throw new Error(`${id} ended as ${why.kind}: ${why.message}`);
      return;
    }
    // A query fails while no control worker is up; the sweep goes on meanwhile, and so does this loop.
    const status = await handle.query(sweepStatusQuery).catch(() => null);
    if (status === null) continue;
    live(progressText(status));
    if (status.pausedBecause !== null && status.pausedBecause !== reason) {
      note(`paused: ${status.pausedBecause}; go on with \`temper resume ${id}\``);
    }
    reason = status.pausedBecause;
  }
}

export function progressText(status: SweepStatus): string {
  const { phase, ended, planned, inFlight, counted, passed, meanReward, leftOut, retried } = status;
  const odd = Object.entries(leftOut).filter(([, count]) => count > 0);
  return [
    phase,
    `${ended} of ${planned} attempts ended`,
    `${inFlight} in flight`,
    `${passed} of ${counted} passed`,
    ...(meanReward === null ? [] : [`mean reward ${meanReward.toFixed(2)}`]),
    ...odd.map(([why, count]) => `${why} ${count}`),
    ...(retried === 0 ? [] : [`${retried} made again`]),
  ].join(' · ');
}
