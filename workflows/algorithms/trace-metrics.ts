import type { TraceCounts, TraceSummary } from '../contracts/trace.ts';

const summed = ['forks', 'maskedTurns', 'aborts', 'unclear', 'dropped', 'droppedTokens'] as const;

/** Sums over the traces of a batch, for everything in which a trace deviates from one clean conversation. */
export function traceMetrics(
  counts: readonly TraceCounts[],
  summaries: readonly Pick<TraceSummary, 'retries'>[],
): Record<string, number> {
  const metrics = Object.fromEntries(summed.map((name) => [`trace:${name}`, total(counts.map((one) => one[name]))]));
  const echoes = total(counts.flatMap(({ echoes: found }) => Object.values(found)));
  const calls = counts.flatMap(({ calls: found = {} }) => Object.entries(found));
  const callsThat = (isMeant: (status: string) => boolean): number =>
    total(calls.map(([status, count]) => (isMeant(status) ? count : 0)));
  const all = Math.max(
    1,
    callsThat(() => true),
  );
  const mainTurns = counts.flatMap(({ mainTurns: found = [] }) => found);
  const allTurns = Math.max(1, total(mainTurns.map(({ all: count }) => count)));
  const retries = total(summaries.map(({ retries: count = 0 }) => count));
  return {
    ...metrics,
    'trace:echoes': echoes,
    'trace:retries': retries,
    'trace:faultyCallShare': callsThat((status) => status !== 'ok') / all,
    'trace:repairedCallShare': callsThat((status) => status === 'repaired') / all,
    'trace:noCallTurnShare': total(mainTurns.map(({ withoutCall }) => withoutCall)) / allTurns,
  };
}

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
