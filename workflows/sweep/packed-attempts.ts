import type { PackedAttempts } from '../contracts/sweep-state.ts';

/** Packs attempts by number with their retries. */
export function packAttempts(attempts: ReadonlyMap<number, number>): PackedAttempts {
  const byRetry = Map.groupBy(
    [...attempts].sort(([one], [other]) => one - other),
    ([, retry]) => retry,
  );
  return [...byRetry].map(([retry, those]) => ({
    retry,
    gaps: those.map(([number], position) => number - (those[position - 1]?.[0] ?? 0)),
  }));
}

/** Returns the attempts by number with their retries, in the order of their numbers for each retry. */
export function unpackAttempts(packed: PackedAttempts): Map<number, number> {
  const attempts = new Map<number, number>();
  for (const { retry, gaps } of packed) {
    let number = 0;
    for (const gap of gaps) {
      number += gap;
      attempts.set(number, retry);
    }
  }
  return attempts;
}
