import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createLimiter } from '../../../infra/sandbox/limiter.ts';

const never = new AbortController().signal;

describe('a limiter', () => {
  it('starts a limited number of operations in order and drops those that give up while they wait', async () => {
    const limiter = createLimiter(2);
    const started: number[] = [];
    const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
    const givingUp = new AbortController();
    const operations = ends.map(({ promise }, index) =>
      limiter.run(
        async () => {
          started.push(index);
          await promise;
        },
        index === 2 ? givingUp.signal : never,
      ),
    );
    await setImmediate();
    assert.deepEqual(started, [0, 1]);
    givingUp.abort(new Error('enough'));
    await assert.rejects(operations[2] ?? Promise.resolve(), /enough/);
    ends[1]?.reject(new Error('failed'));
    await assert.rejects(operations[1] ?? Promise.resolve(), /failed/);
    await setImmediate();
    assert.deepEqual(started, [0, 1, 3]);
    for (const { resolve } of ends) resolve();
    await Promise.all([operations[0], operations[3]]);
  });

  it('keeps the capacity of a started operation until it ends, even if its caller gives up', async () => {
    const limiter = createLimiter(1);
    const givingUp = new AbortController();
    const end = Promise.withResolvers<string>();
    let settled = false;
    const first = limiter
      .run(() => end.promise, givingUp.signal)
      .finally(() => {
        settled = true;
      });
    let started = false;
    const second = limiter.run(async () => {
      started = true;
    }, never);
    await setImmediate();
    givingUp.abort(new Error('enough'));
    await setImmediate();
    assert.deepEqual([settled, started], [false, false]);
    end.resolve('done');
    assert.equal(await first, 'done');
    await second;
    assert.equal(started, true);
  });

  it('rejects a caller whose signal has already aborted', async () => {
    const aborted = AbortSignal.abort(new Error('too late'));
    await assert.rejects(
      createLimiter(1).run(async () => {}, aborted),
      /too late/,
    );
  });
});
