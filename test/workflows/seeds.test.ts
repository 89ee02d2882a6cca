import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { deriveSeed } from '../../infra/gateway/turns/sampling.ts';
import { attemptSeed, epochSeed, groupSeed, rolloutSeed } from '../../workflows/contracts/seeds.ts';

/** Run or sweep, its seed, group or task, rollout or attempt, epoch. */
type Place = readonly [run: boolean, seed: number, first: number, second: number, epoch: number];

const seedOf = ([run, seed, first, second, epoch]: Place): string =>
  epochSeed(
    run ? rolloutSeed(groupSeed(seed, first), second) : attemptSeed(seed, { task: first, attempt: second }),
    epoch,
  );
const small = fc.nat({ max: 120 });
const place: fc.Arbitrary<Place> = fc.tuple(fc.boolean(), small, small, small, fc.integer({ min: 1, max: 3 }));
const key = fc.stringMatching(/^[0-9a-f]{32}$/);

describe('the seeds of sampling', () => {
  it('are the same for the same place and turn, and others for any other', () => {
    fc.assert(
      fc.property(place, place, key, key, (one, other, turn, next) => {
        assert.equal(deriveSeed(seedOf([...one]), turn), deriveSeed(seedOf(one), turn));
        const isSame = one.every((part, at) => part === other[at]);
        assert.equal(seedOf(one) === seedOf(other), isSame);
        if (!isSame) assert.notEqual(deriveSeed(seedOf(one), turn), deriveSeed(seedOf(other), turn));
        if (turn !== next) assert.notEqual(deriveSeed(seedOf(one), turn), deriveSeed(seedOf(one), next));
      }),
      { seed: 1 },
    );
  });

  it('are all different within a run of many groups', () => {
    const places = Array.from({ length: 4096 }, (_, at): Place => [true, 1, Math.floor(at / 8), at % 8, 1]);
    assert.equal(new Set(places.map((one) => deriveSeed(seedOf(one), 'the same conversation'))).size, places.length);
  });

  it('never change, so that a run can be repeated', () => {
    assert.deepEqual([seedOf([true, 7, 3, 2, 1]), seedOf([false, 7, 3, 2, 1])], ['run/7/3/2/1', 'sweep/7/3/2/1']);
    assert.equal(deriveSeed('run/7/3/2/1', '0f'.repeat(16)), 1454668106);
  });
});
