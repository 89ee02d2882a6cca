import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { learningRateAt } from '../../workflows/algorithms/learning-rate.ts';

const rates = (rise: number, fall: number, steps: number): number[] =>
  Array.from({ length: steps }, (_, index) =>
    learningRateAt({ learningRate: 1, learningRateRise: rise, learningRateFall: fall }, index + 1, steps),
  );

describe('the learning rate', () => {
  it('rises over the first steps and falls over the last', () => {
    assert.deepEqual(rates(2, 4, 8), [0.5, 1, 1, 1, 1, 0.75, 0.5, 0.25]);
  });

  it('is constant without rise and fall', () => {
    assert.deepEqual(rates(0, 0, 3), [1, 1, 1]);
  });

  it('is above 0 and at most its peak at every step, also if rise and fall overlap', () => {
    const size = fc.nat({ max: 50 });
    fc.assert(
      fc.property(size, size, fc.integer({ min: 1, max: 50 }), (rise, fall, steps) =>
        rates(rise, fall, steps).every((rate) => rate > 0 && rate <= 1),
      ),
    );
  });
});
