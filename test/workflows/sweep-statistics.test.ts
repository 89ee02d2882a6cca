import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { compareSweeps } from '../../workflows/algorithms/compare-sweeps.ts';
import { passAtK } from '../../workflows/algorithms/pass-at-k.ts';
import { signFlipTest } from '../../workflows/algorithms/sign-flip-test.ts';
import { close } from './statistics.ts';

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

describe('the sign-flip test', () => {
  it('is the share of sign patterns with an equal or larger sum', () => {
    const share = fc.constantFrom(-1, -0.75, -1 / 3, 0, 0.25, 0.5, 1);
    fc.assert(
      fc.property(fc.array(share, { maxLength: 8 }), (differences) => {
        const { pValue, method } = signFlipTest(differences);
        assert.equal(method, 'exact');
        close(pValue, byEnumeration(differences), 1e-9);
      }),
    );
  });

  it("is McNemar's exact test for one attempt each", () => {
    // 8 tasks gained, 2 lost: 2 · P(X ≤ 2), X binomial with 10 tosses.
    const differences = [...Array(8).fill(1), ...Array(2).fill(-1), ...Array(40).fill(0)];
    close(signFlipTest(differences).pValue, (2 * (1 + 10 + 45)) / 1024, 1e-12);
  });

  it('draws random flips if the differences have no common share, always with the same result', () => {
    const differences = Array.from({ length: 12 }, (_, i) => Math.sqrt(i + 2) / 4 - 0.4);
    const found = signFlipTest(differences);
    assert.equal(found.method, 'random');
    close(found.pValue, byEnumeration(differences), 0.015);
    assert.deepEqual(signFlipTest(differences), found);
  });

  it('handles thousands of tasks', () => {
    const differences = Array.from({ length: 5_000 }, (_, i) => (i % 2 === 0 ? 1 : -1));
    assert.deepEqual(signFlipTest(differences), { pValue: 1, method: 'exact' });
  });
});

describe('two sweeps', () => {
  const score = (task: string, passed: number, counted = 4) => ({ task, passed, counted });

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
    close(found?.before, 5 / 12);
    close(found?.after, 6 / 12);
    assert.deepEqual(found?.flipped, [
      { task: 'a', before: 1, after: 0.25 },
      { task: 'b', before: 0, after: 1 },
    ]);
    // Sums of ±3 ± 4 (quarters): all four patterns reach |1|.
    assert.equal(found?.pValue, 1);
  });

  it('have a wide interval if all tasks changed by the same share', () => {
    // 2/3 - 1/3 and 1 - 2/3 differ in their last digit.
    const [before, after] = [
      [score('a', 1, 3), score('b', 2, 3)],
      [score('a', 2, 3), score('b', 3, 3)],
    ];
    const found = compareSweeps(before, after);
    assert.ok(found !== null && found.high - found.low > 0.5, JSON.stringify(found));
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
        close(forth.difference, -back.difference, 1e-12);
        close(forth.pValue, back.pValue, 1e-9);
        close(forth.low, -back.high, 1e-9);
        assert.ok(forth.low <= forth.difference + 1e-12 && forth.difference <= forth.high + 1e-12);
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
            if (found.low <= gain - loss && gain - loss <= found.high) covered += chance;
          }
        }
        assert.ok(covered >= 0.949, `${covered} for ${n} tasks, ${gain} gained and ${loss} lost`);
      }
    }
  });

  it('have an interval as wide as their number of tasks allows if they agree on every task', () => {
    const same = Array.from({ length: 6 }, (_, index) => score(`t${index}`, 4));
    const found = compareSweeps(same, same);
    assert.deepEqual([found?.difference, found?.pValue, found?.flipped], [0, 1, []]);
    assert.ok(found !== null && found.low < -0.4 && found.high > 0.4);
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

function byEnumeration(differences: readonly number[]): number {
  const seen = Math.abs(differences.reduce((sum, one) => sum + one, 0));
  let far = 0;
  for (let signs = 0; signs < 2 ** differences.length; signs += 1) {
    const sum = differences.reduce((total, one, i) => total + (signs & (1 << i) ? one : -one), 0);
    if (Math.abs(sum) >= seen - 1e-9) far += 1;
  }
  return far / 2 ** differences.length;
}
