import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { eachAtOnce } from '../../../workers/cli/commands/tasks/each-at-once.ts';

async function* numbers(count: number): AsyncIterable<number> {
  for (let number = 0; number < count; number += 1) yield number;
}
const never = new AbortController().signal;

describe('work on several items at once', () => {
  it('is done once for each item, and on no more at once than that', async () => {
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
    await eachAtOnce(numbers(20), 3, work, never);
    assert.deepEqual(
      [done.toSorted((a, b) => a - b).join(), most],
      [Array.from({ length: 20 }, (_, i) => i).join(), 3],
    );
  });

  it('ends with what one of them throws, once the others have ended, and begins no further one', async () => {
    const begun: number[] = [];
    const ended: number[] = [];
    const work = async (number: number, signal: AbortSignal): Promise<void> => {
      begun.push(number);
      if (number === 2) throw new TypeError('nobody expected this');
      await once(signal, 'abort');
      await new Promise(setImmediate);
      ended.push(number);
    };
    await assert.rejects(eachAtOnce(numbers(20), 3, work, never), /^TypeError: nobody expected this/);
    assert.deepEqual(
      [begun, ended],
      [
        [0, 1, 2],
        [0, 1],
      ],
    );
  });

  it('ends with what its items throw, and without an error where it is interrupted', async () => {
    const broken = (async function* () {
      yield 0;
      throw new Error('no further row');
    })();
    await assert.rejects(
      eachAtOnce(broken, 2, async () => {}, never),
      /no further row/,
    );
    const interrupt = new AbortController();
    const done: number[] = [];
    const work = async (number: number): Promise<void> => {
      done.push(number);
      interrupt.abort();
    };
    await eachAtOnce(numbers(20), 1, work, interrupt.signal);
    assert.deepEqual(done, [0]);
  });
});
