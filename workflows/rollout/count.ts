import { metricMeter } from '@temporalio/workflow';
import type { FailureRecord } from '../contracts/failures.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { RolloutInput } from '../contracts/rollout.ts';
import type { TraceSummary } from '../contracts/trace.ts';

/** What a rollout came to, as far as it got. */
export interface Counted {
  readonly outcome: Outcome;
  readonly failure?: FailureRecord;
  readonly produced?: { readonly trace: TraceSummary | null };
}

/** Adds an ended rollout to the worker's counters. The SDK counts nothing while it replays. */
export function countRollout(
  { agent, purpose }: Pick<RolloutInput, 'agent' | 'purpose'>,
  { outcome, failure, produced }: Counted,
): void {
  const of = { agent, purpose };
  add('rollouts', 'rollouts that ended', 1, { ...of, outcome, failure: failure?.type ?? 'none' });
  const trace = produced?.trace ?? null;
  if (trace === null) return;
  const { counts, retries = 0 } = trace;
  add('turns', 'model calls', trace.turns, of);
  add('sampled_tokens', 'tokens that the model sampled', trace.sampledTokens, of);
  add('prompt_tokens', 'tokens that were sent to the model', trace.promptTokens ?? 0, of);
  add('retried_requests', 'requests that came again and got the turn that was there', retries, of);
  add('engine_failures', 'turns that ended because the engine stayed away', trace.engineFailures, of);
  add(
    'gateway_failures',
    'turns that the gateway could not record, and absences of it that ended a session',
    trace.gatewayFailures ?? 0,
    of,
  );
  if (counts === undefined) return;
  add('forks', 'requests that were no provable extension of a branch', counts.forks, of);
  add('masked_turns', 'turns that are not trained', counts.maskedTurns, of);
  add('resumed_aborts', 'turns that the engine broke off and that were gone on with', counts.aborts, of);
  add('unclear_branches', 'branches that nothing tells the kind of', counts.unclear, of);
  add('dropped_branches', 'branches that the rule or its limits left out', counts.dropped, of);
  add('dropped_tokens', 'sampled tokens that no segment trains', counts.droppedTokens, of);
  for (const [difference, times] of Object.entries(counts.echoes)) {
    add('realigned_replies', 'replies that came back in another form', times, { ...of, difference });
  }
}

function add(name: string, description: string, value: number, labels: Readonly<Record<string, string>>): void {
  if (value > 0) metricMeter.createCounter(`temper_${name}_total`, undefined, description).add(value, labels);
}
