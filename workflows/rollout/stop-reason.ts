import type { StopReason } from '../contracts/outcome.ts';
import type { TraceSummary } from '../contracts/trace.ts';

/**
 * Returns why an agent stopped, from its exit code and from what the gateway recorded. The gateway knows of a submission by the
 * host tool `submit`, beside which the exit code is no submission. It also knows of the limit at which it refused the last
 * requests of an agent that then ended with an error: a third-party agent has no exit code for it.
 */
export function stopReason(
  hostTools: readonly string[] | undefined,
  trace: TraceSummary | null,
  stop: StopReason,
): StopReason {
  if (trace?.submitted === true) return 'submitted';
  if (stop === 'submitted' && hostTools?.includes('submit') === true) return 'exited';
  if (stop !== 'crashed' || trace === null) return stop;
  if (trace.contextOverflow) return 'context-overflow';
  if (trace.turnLimit) return 'turn-limit';
  return trace.tokenBudget === true ? 'token-budget' : stop;
}
