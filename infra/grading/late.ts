import { TemperFailure } from '../../workflows/contracts/failures.ts';

/**
 * The number of activity attempts that blame the host if a command that handles the agent's work runs out of time, or if a sandbox
 * ends before that work is in it.
 */
export const patientAttempts = 2;

/** Whether another activity attempt is made because a command ran out of time: the host may have been too busy. */
export const isWorthRetry = ({ timedOut }: { readonly timedOut: boolean }, attempt: number): boolean =>
  timedOut && attempt <= patientAttempts;

/**
 * Throws EvaluationTimedOut if a step of an evaluation, such as placing the agent's work in a fresh sandbox, ran out of time and
 * is worth another attempt. Otherwise it returns, because the work itself may be the cause: the caller then judges it as work
 * that the step is impossible for.
 */
export function retryLate(ended: { readonly timedOut: boolean }, attempt: number, step = placing): void {
  if (!isWorthRetry(ended, attempt)) return;
  throw new TemperFailure(
    'EvaluationTimedOut',
    `${step} ran out of time, so the host may be overloaded; the evaluation is retried`,
  );
}

const placing = "placing the agent's work in a fresh sandbox";
