import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { clusteredMean, wilson } from '../../workflows/algorithms/clustered-mean.ts';
import { compareSweeps } from '../../workflows/algorithms/compare-sweeps.ts';
import { passAtK } from '../../workflows/algorithms/pass-at-k.ts';
import { signFlipTest } from '../../workflows/algorithms/sign-flip-test.ts';
import { tFactor } from '../../workflows/algorithms/student-t.ts';

const close = (actual: number | null | undefined, expected: number, within = 1e-6): void => {
  assert.ok(
    actual !== null && actual !== undefined && Math.abs(actual - expected) <= within,
    `expected ${expected}, got ${actual}`,
  );
};

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

describe("Student's t", () => {
  it('matches the tabulated two-sided 5 % points', () => {
    const table = [
      [1, 12.7062],
      [2, 4.3027],
      [3, 3.1824],
      [10, 2.2281],
      [29, 2.0452],
      [120, 1.9799],
    ] as const;
    for (const [degrees, expected] of table) close(tFactor(degrees), expected, 5e-5);
  });

  it('has no jump between sum and expansion, and approaches the normal point', () => {
    close(tFactor(399), tFactor(400), 2e-5);
    assert.ok(tFactor(399) > tFactor(400));
    close(tFactor(1e9), 1.959964, 1e-6);
  });
});

describe('the mean of clusters', () => {
  it('has the cluster-robust standard error if all clusters have the same size', () => {
    const value = fc.double({ min: 0, max: 1, noNaN: true });
    const sweeps = fc
      .tuple(fc.integer({ min: 2, max: 12 }), fc.integer({ min: 1, max: 5 }))
      .chain(([tasks, attempts]) =>
        fc.array(fc.array(value, { minLength: attempts, maxLength: attempts }), { minLength: tasks, maxLength: tasks }),
      );
    fc.assert(
      fc.property(sweeps, (clusters) => {
        const found = clusteredMean(clusters);
        if (found === null || found.standardError === null) return;
        const all = clusters.flat();
        const mean = all.reduce((sum, one) => sum + one, 0) / all.length;
        const squares = clusters.reduce((sum, of) => sum + of.reduce((part, one) => part + one - mean, 0) ** 2, 0);
        const c = clusters.length;
        close(found.mean, mean, 1e-9);
        close(found.standardError, Math.sqrt(((c / (c - 1)) * squares) / all.length ** 2), 1e-9);
      }),
    );
  });

  it('lies in its interval, which lies in [0, 1] and narrows with more similar tasks', () => {
    const cluster = fc.array(fc.constantFrom(0, 1), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.array(cluster, { minLength: 1, maxLength: 20 }), (clusters) => {
        const found = clusteredMean(clusters);
        assert.ok(found !== null && found.low >= 0 && found.high <= 1);
        assert.ok(found.low <= found.mean && found.mean <= found.high, JSON.stringify(found));
        const more = clusteredMean([...clusters, ...clusters, ...clusters, ...clusters]);
        assert.ok(more !== null && more.high - more.low <= found.high - found.low + 1e-12);
      }),
    );
  });

  it('has a wide interval if all tasks have the same mean, and with one task', () => {
    const all = clusteredMean(Array.from({ length: 10 }, () => [1, 1]));
    assert.equal(all?.standardError, null);
    // Wilson 1927: the lower bound is n / (n + z²).
    close(all?.low, 10 / (10 + 3.841459), 1e-6);
    assert.equal(all?.high, 1);
    assert.equal(clusteredMean([[0.1, 0.1, 0.1], [0.1]])?.standardError, null, 'their means are equal');
    assert.deepEqual(clusteredMean([[0]])?.low, 0);
    close(clusteredMean([[0]])?.high, wilson(0, 1).high);
    assert.equal(clusteredMean([]), null);
    assert.equal(clusteredMean([[], []]), null);
  });

  it('has an interval with its nominal coverage, also if the attempts at a task are equal', () => {
    let state = 7;
    const random = (): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state / 2 ** 32;
    };
    let covered = 0;
    for (let trial = 0; trial < 2_000; trial += 1) {
      const clusters = Array.from({ length: 30 }, () => {
        const ease = random() < 0.5 ? 0.1 : 0.9;
        return Array.from({ length: 4 }, () => (random() < ease ? 1 : 0));
      });
      const found = clusteredMean(clusters);
      if (found !== null && found.low <= 0.5 && found.high >= 0.5) covered += 1;
    }
    assert.ok(covered > 1_860 && covered < 1_940, `${covered} of 2,000 intervals cover the mean`);
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

  it('have an interval as wide as their number of tasks allows if they agree on every task', () => {
    const same = Array.from({ length: 6 }, (_, index) => score(`t${index}`, 4));
    const found = compareSweeps(same, same);
    assert.deepEqual([found?.difference, found?.pValue, found?.flipped], [0, 1, []]);
    assert.ok(found !== null && found.low < -0.4 && found.high > 0.4);
  });
});

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
