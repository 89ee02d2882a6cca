import { showHidden } from '../../../infra/report/hidden.ts';
import { describeIssue } from '../../../workflows/contracts/input.ts';
import { regradeStatusQuery } from '../../../workflows/contracts/messages.ts';
import { type RegradeRequest, type RegradeStatus, regradeInput } from '../../../workflows/contracts/regrade.ts';
import { type HomeOption, runningConfigOf } from '../command.ts';
import { Interrupted, UsageError } from '../errors.ts';
import { followUntilEnded } from '../follow-workflow.ts';
import { defined } from '../input-file.ts';
import { onInterrupt } from '../interrupt.ts';
import { note, print, printJson } from '../output.ts';
import { findRegradeReport } from './find-report.ts';
import { regradeText, statesText } from './regrade-text.ts';

export interface RegradeOptions extends HomeOption {
  readonly run?: string;
  readonly grader?: string;
  readonly repeat?: number;
  readonly concurrency?: number;
  readonly reuseVerdicts?: true;
  readonly id?: string;
  readonly detach?: true;
  readonly json?: true;
}

/** Starts a regrade and waits for its result. The first Ctrl-C cancels it and waits for its clean-up. */
export async function runRegrade(rollouts: readonly string[], options: RegradeOptions): Promise<void> {
  const request = requestOf(rollouts, options);
  const { openStackClient } = await import('../stack-client.ts');
  const { startRegrade } = await import('../start-workflow.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  const interrupt = onInterrupt('cancelling the regrade; waiting until its evaluations have cleaned up');
  try {
    const id = options.id ?? `regrade-${new Date().toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')}`;
    const handle = await startRegrade(stack.client, id, request);
    note(`started ${id}`);
    if (options.detach) {
      if (options.json) printJson({ regrade: id, regradeKey: handle.firstExecutionRunId });
      else print(id);
      return;
    }
    interrupt.remains(() => `${id} goes on; end it with \`temper cancel ${id}\``);
    const cancel = (): void => void handle.cancel().catch(() => undefined); // it may have ended in this moment
    if (interrupt.signal.aborted) cancel();
    interrupt.signal.addEventListener('abort', cancel, { once: true });
    await followUntilEnded(handle, async () => {
      const status = await handle.query(regradeStatusQuery);
      return { line: progressText(status), pausedBecause: status.pausedBecause };
    });
    const report = await findRegradeReport(stack, id);
    if (report !== null) {
      const { result, rows } = report;
      if (options.json) printJson({ id, ...result, rows });
      else print(showHidden(regradeText(report)));
    }
    if (interrupt.signal.aborted) throw new Interrupted(`interrupted: ${id} was cancelled, its sandboxes are gone`);
  } finally {
    interrupt.release();
    await stack.close();
  }
}

/** Checked before anything starts. */
function requestOf(named: readonly string[], options: RegradeOptions): RegradeRequest {
  const { run, grader, repeat, concurrency, reuseVerdicts } = options;
  const rollouts = named.length === 0 ? undefined : [...named];
  const request: RegradeRequest = defined({ run, rollouts, grader, repeat, concurrency, reuseVerdicts });
  const parsed = regradeInput.safeParse(request);
  if (parsed.success) return request;
  throw new UsageError(`regrade: ${parsed.error.issues.map((issue) => describeIssue(issue, request)).join('; ')}`);
}

export function progressText(status: RegradeStatus): string {
  const { phase, ended, rollouts, inFlight, states } = status;
  return [phase, `${ended} of ${rollouts} rollouts graded again`, `${inFlight} in flight`, ...statesText(states)].join(
    ' · ',
  );
}
