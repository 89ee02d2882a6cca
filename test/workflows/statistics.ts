import assert from 'node:assert/strict';

export const close = (actual: number | null | undefined, expected: number, within = 1e-6): void => {
  assert.ok(
    actual !== null && actual !== undefined && Math.abs(actual - expected) <= within,
    `expected ${expected}, got ${actual}`,
  );
};

/** Creates a source of numbers from 0 to 1, always the same ones for a seed: mulberry32. */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
