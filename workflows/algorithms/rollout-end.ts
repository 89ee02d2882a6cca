import type { RolloutReport } from '../contracts/group.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { RolloutResult } from '../contracts/rollout.ts';
import type { TraceSummary } from '../contracts/trace.ts';
import { tricksOfRollout } from './flags.ts';

/** Turns a rollout's result into its group's report of it. A report holds many rollouts, so the trace is short. */
export function toRolloutReport(result: RolloutResult): RolloutReport {
  const { rollout, workflowId, outcome, reward, stop, failure, trace, stageSeconds, cost } = result;
  return {
    rollout,
    workflowId,
    outcome,
    reward,
    stop,
    failure,
    stageSeconds,
    trace: trace && shortened(trace),
    ...(cost !== undefined && { cost }),
    ...tricksOfRollout(result),
  };
}

function shortened(trace: TraceSummary): RolloutReport['trace'] {
  const { counts: _, engineSeconds: __, waitedSeconds: ___, ...summary } = trace;
  return summary;
}

/** The end of a rollout's workflow without a result. `gone`: it never started, or retention has removed it. */
export type EndWithoutResult = 'cancelled' | 'terminated' | 'failed' | 'gone';

/** The outcome of such a rollout, the same for groups, sweeps and reconciliation: an end that was not requested is `infra`. */
export const outcomeWithoutResult = (end: EndWithoutResult): Outcome => (end === 'failed' ? 'infra' : 'cancelled');

const closedStatuses: readonly string[] = [
  'COMPLETED',
  'FAILED',
  'CANCELLED',
  'TERMINATED',
  'TIMED_OUT',
  'CONTINUED_AS_NEW',
];

/** Whether a workflow of this status has ended. One that is paused in Temporal may continue, and so may one of an unknown status. */
export const isClosedStatus = (status: string): boolean => closedStatuses.includes(status);

/** Maps the server's status of a workflow that neither runs nor has completed; a time-out is a failure. */
export function endOfStatus(status: string): EndWithoutResult {
  if (status === 'CANCELLED') return 'cancelled';
  if (status === 'TERMINATED') return 'terminated';
  return status === 'NOT_FOUND' ? 'gone' : 'failed';
}

/** A rollout that ended without a result of its own, as far as it is known to others. */
export type RolloutWithoutResult = Pick<RolloutResult, 'rollout' | 'workflowId' | 'task' | 'agent'>;

/** Makes the result of a rollout that ended without one; its cost is unknown. `why` is the message of a failure, if it is known. */
export function resultWithout(known: RolloutWithoutResult, end: EndWithoutResult, why?: string): RolloutResult {
  const message = why ?? messages[end];
  return {
    ...known,
    outcome: outcomeWithoutResult(end),
    reward: null,
    stop: null,
    failure: message === null ? null : { type: 'Internal', message },
    trace: null,
    diff: null,
    verdict: null,
    agentLog: null,
    bundle: null,
    epochs: 1,
    stageSeconds: {},
  };
}

const messages: Readonly<Record<EndWithoutResult, string | null>> = {
  cancelled: null,
  terminated: 'the workflow was terminated from outside',
  failed: 'the workflow failed or ran out of time',
  gone: 'the Temporal server does not know the workflow, and it left no record',
};
