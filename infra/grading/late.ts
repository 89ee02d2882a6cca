import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { killedCode } from '../sandbox/exit-status.ts';

/**
 * The number of activity attempts that blame the host if a command that handles the agent's work is cut off, or if a sandbox ends
 * before that work is in it.
 */
export const patientAttempts = 2;

/** The end of a command, as far as it may have been cut off. */
interface Ended {
  readonly timedOut: boolean;
  readonly exitCode?: number;
}

/** Whether a command ran out of time or was killed, as the kernel does when memory is full. Its input may be fine. */
export const wasCutOff = ({ timedOut, exitCode }: Ended): boolean => timedOut || exitCode === killedCode;

/** Whether a command that was cut off is worth another activity attempt, since the host may have been too busy. */
export const isWorthRetry = (ended: Ended, attempt: number): boolean => wasCutOff(ended) && attempt <= patientAttempts;

/**
 * Throws EvaluationTimedOut if a step of an evaluation, such as placing the agent's work in a fresh sandbox, was cut off and is
 * worth another attempt. Otherwise it returns, because the work itself may be the cause: the caller then judges it as work
 * that the step is impossible for.
 */
export function retryLate(ended: Ended, attempt: number, step = placing): void {
  if (!isWorthRetry(ended, attempt)) return;
  throw new TemperFailure(
    'EvaluationTimedOut',
    `${step} ran out of time or was killed, so the host may be overloaded; the evaluation is retried`,
  );
}

const placing = "placing the agent's work in a fresh sandbox";
