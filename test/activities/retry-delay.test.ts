import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { retryDelayMs, spread } from '../../activities/retry-delay.ts';

const retryPolicy = { initialInterval: 200, maximumInterval: 30_000, backoffCoefficient: 2 };

/** Returns the smallest and the largest of many delays. */
function rangeOf(draw: () => number): readonly [number, number] {
  const drawn = Array.from({ length: 2000 }, draw);
  return [Math.min(...drawn), Math.max(...drawn)];
}

describe('the pause before a retry', () => {
  for (const [attempt, low, high] of [
    [1, 100, 300],
    [2, 200, 600],
    [5, 1600, 4800],
    [8, 12_800, 30_000],
    [9, 22_500, 30_000],
    [1000, 22_500, 30_000],
    [100_000, 22_500, 30_000],
  ] as const) {
    it(`after activity attempt ${attempt} is from ${low} to ${high} ms`, () => {
      const [shortest, longest] = rangeOf(() => retryDelayMs({ attempt, retryPolicy }) ?? -1);
      assert.ok(shortest >= low && longest <= high, `got ${shortest} to ${longest}`);
      assert.ok(longest - shortest > (high - low) * 0.8, `expected a wide spread, got ${shortest} to ${longest}`);
    });
  }

  it('does not pile up at the longest interval', () => {
    const delays = Array.from({ length: 1000 }, () => retryDelayMs({ attempt: 12, retryPolicy }));
    assert.ok(new Set(delays).size > 800);
  });

  it('is left to the server if it told no policy', () => {
    assert.equal(retryDelayMs({ attempt: 1 }), undefined);
  });

  it('is a whole number of milliseconds', () => {
    assert.ok(Number.isInteger(retryDelayMs({ attempt: 3, retryPolicy })));
    assert.ok(Number.isInteger(spread(999)));
  });

  it('that an activity asked for is spread by a quarter', () => {
    const [shortest, longest] = rangeOf(() => spread(1000));
    assert.ok(shortest >= 750 && longest <= 1250 && longest - shortest > 400, `got ${shortest} to ${longest}`);
  });
});
