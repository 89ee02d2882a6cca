import type { RolloutReport } from '../contracts/group.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { RolloutResult } from '../contracts/rollout.ts';
import type { TraceSummary } from '../contracts/trace.ts';
import { tricksOfRollout } from './flags.ts';

/** Turns a rollout's result into its group's report of it. A report holds many rollouts, so it leaves the trace's counts out. */
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
    trace: trace && withoutCounts(trace),
    cost,
    ...tricksOfRollout(result),
  };
}

function withoutCounts({ counts: _, ...summary }: TraceSummary): TraceSummary {
  return summary;
}

/** The end of a rollout's workflow without a result. `gone`: it never started, or retention has removed it. */
export type EndWithoutResult = 'cancelled' | 'terminated' | 'failed' | 'gone';

/** The outcome of such a rollout, the same for groups, sweeps and reconciliation: an end that was not requested is `infra`. */
export const outcomeWithoutResult = (end: EndWithoutResult): Outcome => (end === 'failed' ? 'infra' : 'cancelled');

/** Maps the server's status of a workflow that neither runs nor has completed; a time-out is a failure. */
export function endOfStatus(status: string): EndWithoutResult {
  if (status === 'CANCELLED') return 'cancelled';
  if (status === 'TERMINATED') return 'terminated';
  return status === 'NOT_FOUND' ? 'gone' : 'failed';
}
