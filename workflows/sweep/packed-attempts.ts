import type { PackedAttempts } from '../contracts/sweep-state.ts';

/** Packs attempts by number with their retries. */
export function packAttempts(attempts: ReadonlyMap<number, number>): PackedAttempts {
  const numbers = [...attempts.keys()].sort((a, b) => a - b);
  return {
    gaps: numbers.map((number, position) => number - (numbers[position - 1] ?? 0)),
    retries: [...attempts].filter(([, retry]) => retry > 0),
  };
}

export function unpackAttempts({ gaps, retries }: PackedAttempts): Map<number, number> {
  const attempts = new Map<number, number>();
  let number = 0;
  for (const gap of gaps) {
    number += gap;
    attempts.set(number, 0);
  }
  for (const [retried, retry] of retries) attempts.set(retried, retry);
  return attempts;
}
