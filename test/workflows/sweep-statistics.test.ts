import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { compareSweeps } from '../../workflows/algorithms/compare-sweeps.ts';
import { holm } from '../../workflows/algorithms/holm.ts';
import { passAtK } from '../../workflows/algorithms/pass-at-k.ts';
import { type PairedRewards, permutationTest } from '../../workflows/algorithms/permutation-test.ts';
import { close, createRandom } from './statistics.ts';

describe('pass@k', () => {
  it('is the share of all choices of k attempts that contain a passed one', () => {
    const attempts = fc.array(fc.boolean(), { minLength: 1, maxLength: 9 });
    fc.assert(
      fc.property(attempts, fc.integer({ min: 1, max: 9 }), (passed, k) => {
        const found = passAtK(passed.length, passed.filter(Boolean).length, k);
        if (k > passed.length) return assert.equal(found, null);
        const choices = choose(passed, k);
        close(found, choices.filter((choice) => choice.some(Boolean)).length / choices.length, 1e-12);
      }),
    );
  });

  it('stays exact where binomials overflow', () => {
    // 1 − Π (1 − 100/i) over i = 9,901 … 10,000: by logarithms of whole numbers.
    let log = 0;
    for (let i = 9_901; i <= 10_000; i += 1) log += Math.log1p(-100 / i);
    close(passAtK(10_000, 100, 100), -Math.expm1(log), 1e-12);
    assert.deepEqual([passAtK(4, 2, 5), passAtK(4, 2, 0), passAtK(0, 0, 1)], [null, null, null]);
  });
});

describe('the permutation test', () => {
  it('is the share of all ways to deal the attempts of each task with an equal or larger difference', () => {
    const reward = fc.constantFrom(0, 0.25, 1 / 3, 0.5, 1);
    const side = fc.array(reward, { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(fc.array(fc.record({ before: side, after: side }), { maxLength: 4 }), (tasks) => {
        const { pValue, method } = permutationTest(tasks);
        assert.equal(method, 'exact');
        close(pValue, byEnumeration(tasks), 1e-9);
      }),
      { numRuns: 60 },
    );
  });

  it("is McNemar's exact test for one attempt each", () => {
    // 8 tasks gained, 2 lost: 2 · P(X ≤ 2), X binomial with 10 tosses.
    const tasks = [...Array(8).fill(gained), ...Array(2).fill(lost), ...Array(40).fill(passed)];
    close(permutationTest(tasks).pValue, (2 * (1 + 10 + 45)) / 1024, 1e-12);
  });

  it('finds a difference in at most 5 % of all cases without one, also for different numbers of attempts', () => {
    const random = createRandom(9);
    const attempts = (count: number, chance: number) =>
      Array.from({ length: count }, () => (random() < chance ? 1 : 0));
    for (const [before, after] of [
      [1, 8],
      [8, 1],
      [4, 3],
    ] as const) {
      for (const chance of [0.1, 0.9]) {
        const sweeps = Array.from({ length: 600 }, () =>
          Array.from({ length: 20 }, () => ({ before: attempts(before, chance), after: attempts(after, chance) })),
        );
        const found = sweeps.filter((tasks) => permutationTest(tasks).pValue <= 0.05).length;
        assert.ok(found <= 0.055 * 600, `${found} of 600: ${before} attempts against ${after} at ${chance}`);
      }
    }
  });

  it('draws random permutations if the rewards have no common share, always with the same result', () => {
    const root = (of: number): number => Math.sqrt(of / 50);
    const tasks = Array.from({ length: 4 }, (_, i) => ({
      before: [root(i + 2), root(i + 7)],
      after: [root(2 * i + 9), root(23 + i), root(i + 31)],
    }));
    const found = permutationTest(tasks);
    assert.equal(found.method, 'random');
    close(found.pValue, byEnumeration(tasks), 0.005);
    assert.deepEqual(permutationTest(tasks), found);
  });

  it('handles thousands of tasks', () => {
    const tasks = Array.from({ length: 5_000 }, (_, i) => (i % 2 === 0 ? gained : lost));
    const { pValue, method } = permutationTest(tasks);
    close(pValue, 1, 1e-9);
    assert.equal(method, 'exact');
  });
});

describe("Holm's adjustment", () => {
  it('multiplies each p-value by the number of those that are not smaller, and keeps their order', () => {
    const adjusted = holm([0.04, 0.001, 0.03, 0.9]);
    for (const [index, expected] of [0.09, 0.004, 0.09, 0.9].entries()) close(adjusted[index], expected, 1e-12);
    assert.deepEqual([holm([0.02]), holm([])], [[0.02], []]);
  });
});

describe('two sweeps', () => {
  const score = (task: string, some: number, counted = 4) => {
    const rewards = Array.from({ length: counted }, (_, index) => (index < some ? 1 : 0));
    return { task, passed: some, counted, rewards };
  };

  it('are compared over the tasks that both counted, with the tasks that flipped', () => {
    const before = [
      score('a', 4),
      score('b', 0),
      score('c', 1),
      score('gone', 4),
      score('lost', 4, 0),
      score('late', 4),
    ];
    const after = [score('a', 1), score('b', 4), score('c', 1), score('new', 4), score('lost', 4), score('late', 4, 0)];
    const found = compareSweeps(before, after);
    assert.deepEqual([found?.tasks, found?.onlyBefore, found?.onlyAfter], [3, 2, 2]);
    close(found?.passRate.before, 5 / 12);
    close(found?.passRate.after, 6 / 12);
    assert.deepEqual(found?.flipped, [
      { task: 'a', before: 1, after: 0.25 },
      { task: 'b', before: 0, after: 1 },
    ]);
    close(found?.passRate.pValue, byEnumeration([paired(4, 1), paired(0, 4), paired(1, 1)]), 1e-9);
    // Of 5, 4 and 2 passes dealt to 4 attempts on each side, one side gets at least 2 and the other fewer.
    close(found?.flippedByChance, 1 / 7 + 17 / 35 + 3 / 7);
  });

  it('have a wide interval if all tasks changed by the same share', () => {
    // 2/3 - 1/3 and 1 - 2/3 differ in their last digit.
    const [before, after] = [
      [score('a', 1, 3), score('b', 2, 3)],
      [score('a', 2, 3), score('b', 3, 3)],
    ];
    const found = compareSweeps(before, after);
    assert.ok(found !== null && found.passRate.high - found.passRate.low > 0.5, JSON.stringify(found));
  });

  it('are not compared without a common task', () => {
    assert.equal(compareSweeps([score('a', 1)], [score('b', 1)]), null);
  });

  it('have the opposite difference and the same p-value when swapped', () => {
    const scores = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 15 });
    fc.assert(
      fc.property(scores, scores, (left, right) => {
        const sweep = (passed: number[]) => passed.map((one, index) => score(`t${index}`, one));
        const [forth, back] = [compareSweeps(sweep(left), sweep(right)), compareSweeps(sweep(right), sweep(left))];
        assert.ok(forth !== null && back !== null);
        const { low, difference, high, pValue } = forth.passRate;
        close(difference, -back.passRate.difference, 1e-12);
        close(pValue, back.passRate.pValue, 1e-9);
        close(low, -back.passRate.high, 1e-9);
        assert.ok(low <= difference + 1e-12 && difference <= high + 1e-12);
        assert.deepEqual(forth.reward, forth.passRate);
      }),
    );
  });

  it('have an interval that covers the difference in at least 95 % of all cases, exactly, with one attempt each', () => {
    for (const n of [20, 60]) {
      for (const [gain, loss] of [
        [0.02, 0],
        [0.1, 0.05],
        [0.3, 0.3],
        [0.5, 0],
        [0.9, 0.02],
      ] as const) {
        let covered = 0;
        for (let won = 0; won <= n; won += 1) {
          for (let lost = 0; won + lost <= n; lost += 1) {
            const equal = n - won - lost;
            const log = logOf(n) - logOf(won) - logOf(lost) - logOf(equal) + equal * Math.log(1 - gain - loss);
            const chance = Math.exp(log) * gain ** won * loss ** lost;
            if (chance < 1e-9) continue;
            const side = (passes: (task: number) => boolean) =>
              Array.from({ length: n }, (_, task) => score(`t${task}`, passes(task) ? 1 : 0, 1));
            const found = compareSweeps(
              side((task) => task < lost),
              side((task) => n - task <= won),
            );
            assert.ok(found !== null);
            const { low, high } = found.passRate;
            if (low <= gain - loss && gain - loss <= high) covered += chance;
          }
        }
        assert.ok(covered >= 0.949, `${covered} for ${n} tasks, ${gain} gained and ${loss} lost`);
      }
    }
  });

  it('have an interval as wide as their number of tasks allows if they agree on every task', () => {
    const same = Array.from({ length: 6 }, (_, index) => score(`t${index}`, 4));
    const found = compareSweeps(same, same);
    assert.ok(found !== null);
    const { difference, pValue, low, high } = found.passRate;
    assert.deepEqual([difference, pValue, found.flipped, found.flippedByChance], [0, 1, [], 0]);
    assert.ok(low < -0.4 && high > 0.4);
  });

  it('are compared by their rewards, too, which passes say little of', () => {
    const of = (task: string, rewards: readonly number[]) => ({ task, passed: 0, counted: rewards.length, rewards });
    const tasks = ['a', 'b', 'c', 'd', 'e', 'f'];
    const found = compareSweeps(
      tasks.map((task) => of(task, [0.2, 0.4])),
      tasks.map((task) => of(task, [0.8, 0.6, 0.7])),
    );
    assert.deepEqual([found?.passRate.difference, found?.passRate.pValue], [0, 1]);
    close(found?.reward.difference, 0.4);
    close(found?.reward.pValue, 10 ** -6, 1e-12);
  });

  it('would flip as many tasks by chance as they do, with one attempt each', () => {
    const [before, after] = [
      [1, 0, 1, 0],
      [0, 1, 1, 0],
    ].map((side) => side.map((one, i) => score(`t${i}`, one, 1)));
    assert.equal(compareSweeps(before ?? [], after ?? [])?.flippedByChance, 2);
  });
});

/** The logarithm of n!. */
function logOf(n: number): number {
  let log = 0;
  for (let i = 2; i <= n; i += 1) log += Math.log(i);
  return log;
}

function choose<Item>(items: readonly Item[], k: number): Item[][] {
  if (k === 0) return [[]];
  return items.flatMap((item, index) => choose(items.slice(index + 1), k - 1).map((rest) => [item, ...rest]));
}

const gained: PairedRewards = { before: [0], after: [1] };
const lost: PairedRewards = { before: [1], after: [0] };
const passed: PairedRewards = { before: [1], after: [1] };
const attemptsOf = (some: number): number[] => [0, 1, 2, 3].map((index) => (index < some ? 1 : 0));
const paired = (before: number, after: number): PairedRewards => ({
  before: attemptsOf(before),
  after: attemptsOf(after),
});

/** The p-value by all ways to deal the attempts of each task. */
function byEnumeration(tasks: readonly PairedRewards[]): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / values.length;
  const seen = tasks.reduce((sum, { before, after }) => sum + mean(after) - mean(before), 0);
  let sums: readonly number[] = [0];
  for (const { before, after } of tasks) {
    const all = [...before, ...after].map((reward, index) => ({ reward, index }));
    const differences = choose(all, after.length).map((chosen) => {
      const rest = all.filter((one) => !chosen.includes(one));
      return mean(chosen.map(({ reward }) => reward)) - mean(rest.map(({ reward }) => reward));
    });
    sums = sums.flatMap((sum) => differences.map((one) => sum + one));
  }
  return sums.filter((sum) => Math.abs(sum) >= Math.abs(seen) - 1e-9).length / sums.length;
}
