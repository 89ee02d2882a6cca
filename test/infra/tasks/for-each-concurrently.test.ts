import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { forEachConcurrently } from '../../../infra/tasks/for-each-concurrently.ts';

async function* numbers(count: number): AsyncIterable<number> {
  for (let number = 0; number < count; number += 1) yield number;
}
const never = new AbortController().signal;

describe('forEachConcurrently', () => {
  it('works on each item once, and on no more than the limit at once', async () => {
    const done: number[] = [];
    let atOnce = 0;
    let most = 0;
    const work = async (number: number): Promise<void> => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await new Promise(setImmediate);
      atOnce -= 1;
      done.push(number);
    };
    await forEachConcurrently(numbers(20), 3, work, never);
    assert.deepEqual(
      [done.toSorted((a, b) => a - b).join(), most],
      [Array.from({ length: 20 }, (_, i) => i).join(), 3],
    );
  });

  it('throws the first error once the other work has ended, and begins no further work', async () => {
    const begun: number[] = [];
    const ended: number[] = [];
    const work = async (number: number, signal: AbortSignal): Promise<void> => {
      begun.push(number);
      if (number === 2) throw new TypeError('unexpected');
      await once(signal, 'abort');
      await new Promise(setImmediate);
      ended.push(number);
    };
    await assert.rejects(forEachConcurrently(numbers(20), 3, work, never), /^TypeError: unexpected/);
    assert.deepEqual(
      [begun, ended],
      [
        [0, 1, 2],
        [0, 1],
      ],
    );
  });

  it('throws an error of the items, and ends without an error when it is interrupted', async () => {
    const broken = (async function* () {
      yield 0;
      throw new Error('no further row');
    })();
    await assert.rejects(
      forEachConcurrently(broken, 2, async () => {}, never),
      /no further row/,
    );
    const interrupt = new AbortController();
    const done: number[] = [];
    const work = async (number: number): Promise<void> => {
      done.push(number);
      interrupt.abort();
    };
    await forEachConcurrently(numbers(20), 1, work, interrupt.signal);
    assert.deepEqual(done, [0]);
  });
});
