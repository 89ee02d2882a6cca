import type { TraceCounts, TraceSummary } from '../contracts/trace.ts';

const summed = ['forks', 'maskedTurns', 'aborts', 'unclear', 'dropped', 'droppedTokens'] as const;

/** Sums over the traces of a batch, for everything in which a trace deviates from one clean conversation. */
export function traceMetrics(
  counts: readonly TraceCounts[],
  summaries: readonly Pick<TraceSummary, 'retries'>[],
): Record<string, number> {
  const metrics = Object.fromEntries(summed.map((name) => [`trace:${name}`, total(counts.map((one) => one[name]))]));
  const echoes = total(counts.flatMap(({ echoes: found }) => Object.values(found)));
  const retries = total(summaries.map(({ retries: count = 0 }) => count));
  return { ...metrics, 'trace:echoes': echoes, 'trace:retries': retries };
}

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
