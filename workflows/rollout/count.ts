import { metricMeter } from '@temporalio/workflow';
import type { FailureRecord } from '../contracts/failures.ts';
import { type Counter, counters } from '../contracts/metrics.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { RolloutInput } from '../contracts/rollout.ts';
import type { TraceSummary } from '../contracts/trace.ts';

/** The part of a rollout's end that is counted. */
export interface Counted {
  readonly outcome: Outcome;
  readonly failure?: FailureRecord;
  readonly adoptions?: number;
  readonly produced?: { readonly trace: TraceSummary | null };
}

/** Adds an ended rollout to the worker's counters. The SDK does not count during a replay. */
export function countRollout(
  { agent, purpose }: Pick<RolloutInput, 'agent' | 'purpose'>,
  { outcome, failure, adoptions = 0, produced }: Counted,
): void {
  const of = { agent, purpose };
  add('rollouts', 1, { ...of, outcome, failure: failure?.type ?? 'none' });
  add('adoptions', adoptions, of);
  const trace = produced?.trace ?? null;
  if (trace === null) return;
  const { counts, retries = 0 } = trace;
  add('turns', trace.turns, of);
  add('sampled_tokens', trace.sampledTokens, of);
  add('prompt_tokens', trace.promptTokens, of);
  add('retried_requests', retries, of);
  add('engine_failures', trace.engineFailures, of);
  add('gateway_failures', trace.gatewayFailures ?? 0, of);
  if (counts === undefined) return;
  add('forks', counts.forks, of);
  add('masked_turns', counts.maskedTurns, of);
  add('resumed_aborts', counts.aborts, of);
  add('unclear_branches', counts.unclear, of);
  add('dropped_branches', counts.dropped, of);
  add('dropped_tokens', counts.droppedTokens, of);
  for (const [status, times] of Object.entries(counts.calls ?? {})) add('tool_calls', times, { ...of, status });
  for (const [difference, times] of Object.entries(counts.echoes)) {
    add('realigned_replies', times, { ...of, difference });
  }
}

function add(name: Counter, value: number, labels: Readonly<Record<string, string>>): void {
  if (value > 0) metricMeter.createCounter(`temper_${name}_total`, undefined, counters[name]).add(value, labels);
}
