import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { attemptAll, throwTogether } from '../../infra/attempt-all.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

describe('attemptAll', () => {
  it('does the work for every item in order and throws all failures together at the end', async () => {
    const done: number[] = [];
    const work = async (one: number): Promise<void> => {
      if (one % 2 === 0) throw new Error(`no room for ${one}`);
      done.push(one);
    };
    await assert.rejects(attemptAll([1, 2, 3, 4, 5], 'all to be odd', work), (error) => {
      assert.ok(error instanceof AggregateError);
      assert.equal(error.message, 'expected all to be odd, got 2 failures; the first: no room for 2');
      assert.deepEqual(
        error.errors.map(({ message }) => message),
        ['no room for 2', 'no room for 4'],
      );
      return true;
    });
    assert.deepEqual(done, [1, 3, 5]);
    await attemptAll([1, 3], 'all to be odd', work);
  });

  it('reports whatever was thrown, even undefined', () => {
    assert.throws(() => throwTogether('a', [undefined]), /expected a, got 1 failures; the first: undefined/);
    throwTogether('a', []);
  });

  it("throws a failure of the first one's type", () => {
    const full = new TemperFailure('DiskFull', 'no room');
    assert.throws(() => throwTogether('a', [full, new Error('b')]), {
      type: 'DiskFull',
      message: /2 failures.*no room/,
    });
  });
});
