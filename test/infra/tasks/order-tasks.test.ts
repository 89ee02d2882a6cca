import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countSkipping, createTaskOrder } from '../../../infra/tasks/order-tasks.ts';

const names = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `task-${index}`);
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);
const none = new Set<string>();

describe('createTaskOrder', () => {
  const all = names(20);
  const chosen = (count: number, leftOut: ReadonlySet<string>, order = createTaskOrder(all, 'set#1')) =>
    upTo(count).map((index) => order.at(index, leftOut)?.address);

  it('contains each task once per round, in another order each time, equal in every process', () => {
    const rounds = upTo(5).map((round) => chosen(100, none).slice(20 * round, 20 * round + 20));
    for (const round of rounds) assert.deepEqual(round.toSorted(), all.toSorted());
    assert.equal(new Set(rounds.map((round) => round.join())).size, 5);
    const backwards = createTaskOrder(all, 'set#1');
    const later = upTo(100).toReversed();
    assert.deepEqual(later.map((index) => backwards.at(index, none)?.address).toReversed(), rounds.flat());
    assert.notDeepEqual(chosen(20, none, createTaskOrder(all, 'set#2')), rounds[0]);
  });

  it('skips left-out tasks, while all others still occur once per round', () => {
    const leftOut = new Set(['task-3', 'task-4', 'task-17', 'of-another-set']);
    const kept = all.filter((name) => !leftOut.has(name)).toSorted();
    for (const round of upTo(10)) {
      const found = chosen(170, leftOut).slice(17 * round, 17 * round + 17);
      assert.deepEqual(found.toSorted(), kept);
    }
  });

  it('keeps the order of the other tasks, and names left-out tasks where they would have occurred', () => {
    const whole = chosen(20, none);
    const leftOut = new Set(whole.slice(4, 6) as string[]);
    const order = createTaskOrder(all, 'set#1');
    const choices = upTo(18).map((index) => order.at(index, leftOut));
    assert.deepEqual(
      choices.map((choice) => choice?.address),
      whole.toSpliced(4, 2),
    );
    assert.deepEqual(
      choices.map((choice) => choice?.passedOver),
      upTo(18).map((index) => (index === 4 ? whole.slice(4, 6) : [])),
    );
    // Tasks may be released while the same order is in use.
    assert.deepEqual(chosen(20, none, order), whole);
  });

  it('returns null when all tasks are left out', () => {
    assert.equal(createTaskOrder(all, 'set#1').at(7, new Set(all)), null);
  });

  it('is cheap after the first call of a round', { timeout: 120_000 }, () => {
    // If each call created the round again, this would take an hour.
    const order = createTaskOrder(names(100_000), 'large#1');
    const leftOut = new Set(['task-5', 'task-70000']);
    const found = new Set(upTo(99_998).map((index) => order.at(index, leftOut)?.address));
    assert.equal(found.size, 99_998);
  });
});

describe('countSkipping', () => {
  it('skips each left-out number once', () => {
    const at = (index: number, ...leftOut: readonly number[]) => countSkipping(index, leftOut);
    assert.deepEqual(
      upTo(6).map((index) => at(index, 4, 1, 2).at),
      [0, 3, 5, 6, 7, 8],
    );
    assert.deepEqual(
      upTo(4).map((index) => at(index, 4, 1, 2).passed),
      [0, 2, 1, 0],
    );
    assert.deepEqual(at(0, 0), { at: 1, passed: 1 });
    assert.deepEqual(at(100_000), { at: 100_000, passed: 0 });
  });
});
