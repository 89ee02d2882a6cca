import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** The activity attempts at an evaluation in which what the agent left may take too long without a verdict. */
const patientAttempts = 2;

/**
 * Throws EvaluationTimedOut if placing an agent's work in a fresh sandbox ran out of time: the host may be too busy. Returns in
 * the third attempt, since the work itself may be the cause, and is then judged as work that cannot be placed.
 */
export function retryLate({ timedOut }: { readonly timedOut: boolean }, attempt: number): void {
  if (!timedOut || attempt > patientAttempts) return;
  throw new TemperFailure(
    'EvaluationTimedOut',
    "placing the agent's work in a fresh sandbox ran out of time, so the host may be overloaded; the evaluation is retried",
  );
}
