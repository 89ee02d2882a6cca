import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** The number of activity attempts at an evaluation that blame the host if the agent's work cannot be placed in time. */
const patientAttempts = 2;

/**
 * Throws EvaluationTimedOut if placing an agent's work in a fresh sandbox ran out of time, since the host may be too busy. From
 * the third attempt on it returns, because the work itself may be the cause: the caller then judges it as work that cannot be
 * placed.
 */
export function retryLate({ timedOut }: { readonly timedOut: boolean }, attempt: number): void {
  if (!timedOut || attempt > patientAttempts) return;
  throw new TemperFailure(
    'EvaluationTimedOut',
    "placing the agent's work in a fresh sandbox ran out of time, so the host may be overloaded; the evaluation is retried",
  );
}
