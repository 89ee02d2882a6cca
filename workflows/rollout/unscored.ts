import type { FailureRecord } from '../contracts/failures.ts';
import type { RolloutInput } from '../contracts/rollout.ts';
import type { TraceSummary } from '../contracts/trace.ts';
import type { AgentsEnd, Produced } from './epoch-context.ts';
import { StageFailure } from './failure.ts';
import type { TimeLimits } from './time-limits.ts';

/**
 * Decides whether an agent's work is not scored. Throws a `StageFailure` if the engine or the gateway failed at a turn, or kept the
 * agent waiting until its time was over, which makes the rollout `infra`. Returns a failure if the run does not score this end of an agent, else null.
 */
export function unscored(
  { unscored: excluded, waitingMs }: Pick<RolloutInput, 'unscored'> & Pick<TimeLimits, 'waitingMs'>,
  { end, trace, steps = [] }: Pick<Produced, 'end' | 'trace' | 'steps'>,
): FailureRecord | null {
  if (trace?.environmentFailures !== undefined)
    throw new StageFailure({ ...lostEnvironment, stage: 'awaitAgent' }, false);
  // Some agents end without an error when they lose their model; what they leave then is not an answer.
  const submitted = end.stop === 'submitted' && steps.every(({ stop }) => stop === null || stop === 'submitted');
  const failed = trace !== null && (!submitted || trace.cutOff === true) ? failureIn(trace) : null;
  if (failed !== null) throw new StageFailure({ ...failed, stage: 'awaitAgent' }, false);
  if (waitedTooLong(end, { waitingMs }))
    throw new StageFailure({ ...tooLong(end, waitingMs), stage: 'awaitAgent' }, false);
  const stop = trace?.contextOverflow && end.stop !== 'submitted' ? 'context-overflow' : end.stop;
  if (stop !== 'deadline' && stop !== 'context-overflow') return null;
  if (!excluded.includes(stop)) return null;
  return { type: 'Excluded', message: `the run does not score an agent that ends by ${stop}`, stage: 'awaitAgent' };
}

/** Whether an agent was ended before it had used its time, because it had waited longer than its clock may stand still. */
export const waitedTooLong = (
  { stop, waitedMs = 0, waitingMs }: Pick<AgentsEnd, 'stop' | 'waitedMs' | 'waitingMs'>,
  limits: Pick<TimeLimits, 'waitingMs'>,
): boolean => stop === 'deadline' && limits.waitingMs > 0 && waitedMs > (waitingMs ?? limits.waitingMs);

const tooLong = (end: Pick<AgentsEnd, 'waitedMs' | 'waitingMs'>, inputMs: number): Omit<FailureRecord, 'stage'> => {
  const { waitedMs = 0, waitingMs = inputMs } = end;
  const [limit, more] =
    waitingMs < inputMs
      ? ['what the longest lifetime of its sandbox leaves', 'use sandboxes that live longer']
      : ['engineWaitingSec', 'raise engineWaitingSec'];
  return {
    type: 'EngineWaitExceeded',
    message:
      `the agent waited ${Math.round(waitedMs / 1000)} s for an engine, its clock stands still for ${waitingMs / 1000} s at most ` +
      `(${limit}), and then its time was over; add engines, start fewer rollouts or ${more}`,
  };
};

/** The failure of a rollout whose environment was lost, whatever the agent did afterwards: its reward is unknown. */
const lostEnvironment = {
  type: 'EnvironmentUnavailable',
  message: "the task's environment was lost during a call; see the gateway's log",
} as const;

function failureIn({
  engineFailures,
  gatewayFailures = 0,
  upstream,
}: TraceSummary): Omit<FailureRecord, 'stage'> | null {
  if (engineFailures > 0) {
    const message =
      upstream === undefined
        ? 'the engine stayed away during a turn, longer than the gateway waits or until the turn was cancelled'
        : `the upstream model ${upstream.name} failed during a turn; see the gateway's log`;
    return { type: 'EngineUnavailable', message };
  }
  if (gatewayFailures === 0) return null;
  const message =
    'the gateway could not record a turn, failed at it, or was away for a minute; check its log and its disk';
  return { type: 'GatewayUnavailable', message };
}
