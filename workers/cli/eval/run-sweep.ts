import { sweepStatusQuery } from '../../../workflows/contracts/messages.ts';
import type { SweepStatus } from '../../../workflows/contracts/sweep.ts';
import { type HomeOption, runningConfigOf } from '../command.ts';
import { Interrupted } from '../errors.ts';
import { followUntilEnded } from '../follow-workflow.ts';
import { onInterrupt } from '../interrupt.ts';
import { note, print, printJson } from '../output.ts';
import { findSweepReport } from './find-report.ts';
import { type SweepOptions, sweepRequestOf } from './sweep-options.ts';
import { sweepText } from './sweep-text.ts';

export interface EvalOptions extends HomeOption, SweepOptions {
  readonly id?: string;
  readonly detach?: true;
  readonly json?: true;
}

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
    await followUntilEnded(handle, async () => {
      const status = await handle.query(sweepStatusQuery);
      return { line: progressText(status), pausedBecause: status.pausedBecause };
    });
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
