import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { betaQuantile } from '../../workflows/algorithms/beta.ts';
import { clusteredMean } from '../../workflows/algorithms/clustered-mean.ts';
import type { Estimate } from '../../workflows/contracts/sweep.ts';
import { close, createRandom } from './statistics.ts';

const shares = Array.from({ length: 97 }, (_, i) => 0.5 + i / 200);
const numbersOfTasks = [20, 27, 40, 50, 75, 100];

const estimate = (clusters: readonly (readonly number[])[]): Estimate => {
  const found = clusteredMean(clusters);
  assert.ok(found !== null);
  return found;
};
/** The estimate of n tasks with one attempt each, some of which passed. */
const oneAttempt = (passed: number, n: number): Estimate =>
  estimate(Array.from({ length: n }, (_, i) => [i < passed ? 1 : 0]));
const covers = ({ low, high }: Estimate, share: number): boolean => low <= share && share <= high;

describe('the quantiles of the beta distribution', () => {
  it('are those of a power where one parameter is 1', () => {
    for (const p of [0.025, 0.5, 0.975]) {
      for (const a of [0.01, 0.7, 1, 20, 333.3, 50_000]) {
        close(betaQuantile(p, a, 1), p ** (1 / a), 1e-9);
        close(betaQuantile(p, 1, a), -Math.expm1(Math.log1p(-p) / a), 1e-9);
      }
    }
  });

  it('are the bounds of the exact interval of a share', () => {
    // The probability of at least 8 of 10 at the lower bound, and of at most 8 at the upper one, is 2.5 %.
    const { low, high } = oneAttempt(8, 10);
    const at = (p: number) => binomial(10, p);
    close(at(low).slice(8).reduce(sum), 0.025, 1e-9);
    close(at(high).slice(0, 9).reduce(sum), 0.025, 1e-9);
    // A printed table: 8 of 10.
    close(low, 0.4439, 5e-5);
    close(high, 0.9748, 5e-5);
  });
});

describe('the interval of a pass rate', () => {
  it('covers it in at least 95 % of all cases, exactly, with one attempt at each task', () => {
    for (const n of numbersOfTasks) {
      const found = Array.from({ length: n + 1 }, (_, passed) => oneAttempt(passed, n));
      for (const share of shares) {
        const coverage = binomial(n, share)
          .filter((_, passed) => covers(found[passed] ?? none, share))
          .reduce(sum, 0);
        assert.ok(coverage >= 0.95, `${coverage} for ${n} tasks at ${share}`);
      }
    }
  });

  it('covers it if the tasks differ in difficulty', () => {
    // 40 tasks, of which every fifth passes with 0.6 and the others always.
    const coverage = binomial(8, 0.6).filter((_, passed) => covers(oneAttempt(32 + passed, 40), 0.92));
    assert.ok(coverage.reduce(sum, 0) >= 0.95, String(coverage));
  });

  it('is at most 1.15 times as wide as that of Wilson for the same effective number', () => {
    for (const n of numbersOfTasks) {
      for (let passed = 0; passed <= n; passed += 1) {
        const { mean, low, high, effective } = oneAttempt(passed, n);
        close(effective, n, 1e-9);
        assert.ok(high - low <= 1.15 * wilsonWidth(mean, effective), `${passed} of ${n}`);
      }
    }
  });

  it('falls at both ends with every failure, with one attempt at each task', () => {
    for (const n of [1, 2, 20, 100]) {
      for (let passed = n; passed > 0; passed -= 1) {
        const [before, after] = [oneAttempt(passed, n), oneAttempt(passed - 1, n)];
        assert.ok(after.low < before.low || (passed === 1 && after.low === 0), `${passed} of ${n}`);
        assert.ok(after.high < before.high || (passed === n && before.high === 1), `${passed} of ${n}`);
      }
    }
  });

  it('never rises with a failure, with several attempts at each task', () => {
    const sweeps = fc
      .tuple(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 2, max: 8 }), fc.constantFrom(0, 0.2, 0.9, 1))
      .chain(([tasks, attempts, often]) =>
        fc.tuple(
          fc.constant(attempts),
          fc.array(
            fc.oneof(
              { weight: 3, arbitrary: fc.constant(Math.round(often * attempts)) },
              fc.integer({ min: 0, max: attempts }),
            ),
            { minLength: tasks, maxLength: tasks },
          ),
        ),
      );
    fc.assert(
      fc.property(sweeps, ([attempts, passed]) => {
        const of = (counts: readonly number[]) =>
          estimate(counts.map((some) => Array.from({ length: attempts }, (_, i) => (i < some ? 1 : 0))));
        const before = of(passed);
        for (const [task, some] of passed.entries()) {
          if (some === 0) continue;
          const after = of(passed.with(task, some - 1));
          assert.ok(after.low <= before.low + 1e-9 && after.high <= before.high + 1e-9, `${passed} at ${task}`);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('covers it with several attempts, whatever they have in common', () => {
    const random = createRandom(3);
    /** The chances of a task to pass, with a mean p: equal, of every size, and all or nothing. */
    const chances = {
      equal: (p: number) => p,
      spread: (p: number) => random() ** ((1 - p) / p),
      sure: (p: number) => (random() < p ? 1 : 0),
    };
    const trials = 300;
    for (const [kind, chanceAt] of Object.entries(chances)) {
      for (const [tasks, attempts, p] of [
        [20, 2, 0.5],
        [20, 8, 0.9],
        [50, 4, 0.95],
        [20, 3, 0.98],
        [100, 8, 0.8],
      ] as const) {
        const covered = Array.from({ length: trials }, () =>
          Array.from({ length: tasks }, (_, task) => {
            const chance = chanceAt(p);
            // Some attempts are lost.
            const counted = task % 4 === 0 ? 1 : attempts;
            return Array.from({ length: counted }, () => (random() < chance ? 1 : 0));
          }),
        ).filter((clusters) => covers(estimate(clusters), p)).length;
        assert.ok(covered >= 0.93 * trials, `${covered} of ${trials}: ${tasks} × ${attempts} at ${p}, ${kind}`);
      }
    }
  });

  it('narrows with attempts that have nothing in common, and not with equal ones', () => {
    const tasks = Array.from({ length: 100 }, (_, task) => task);
    const once = estimate(tasks.map((task) => [task % 2]));
    const independent = estimate(tasks.map((task) => Array.from({ length: 8 }, (_, i) => (task + i) % 2)));
    const equal = estimate(tasks.map((task) => Array<number>(8).fill(task % 2)));
    assert.deepEqual(equal, once);
    assert.ok(independent.high - independent.low < (once.high - once.low) / 2);
    assert.ok(independent.high - independent.low <= 1.15 * wilsonWidth(0.5, independent.effective));
  });
});

describe('the mean of clusters', () => {
  it('lies in its interval, which lies in [0, 1] and narrows with more similar tasks', () => {
    const value = fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true }));
    const cluster = fc.array(value, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.array(cluster, { minLength: 1, maxLength: 20 }), (clusters) => {
        const found = estimate(clusters);
        assert.ok(0 <= found.low && found.low <= found.mean && found.mean <= found.high && found.high <= 1);
        const more = estimate([...clusters, ...clusters, ...clusters, ...clusters]);
        assert.ok(more.high - more.low <= found.high - found.low + 1e-9);
      }),
    );
  });

  it('leaves clusters without values out, and is null without others', () => {
    assert.deepEqual(clusteredMean([[1], [], [0]]), clusteredMean([[1], [0]]));
    assert.deepEqual([clusteredMean([]), clusteredMean([[], []])], [null, null]);
  });

  it('of rewards that vary less than passes and failures has a narrower interval, also if all are equal', () => {
    const [part, whole] = [Array<number[]>(50).fill([0.5]), Array.from({ length: 50 }, (_, i) => [i % 2])];
    const [equal, passed] = [estimate(part), estimate(whole)];
    assert.ok(equal.high - equal.low < (passed.high - passed.low) / 2, JSON.stringify(equal));
    assert.ok(equal.high - equal.low > 0.02, 'fifty equal rewards do not prove that all are');
  });
});

const none = { low: Number.NaN, high: Number.NaN } as Estimate;
const sum = (total: number, one: number): number => total + one;

/** The probabilities of 0 … n passes. */
function binomial(n: number, p: number): number[] {
  let chances = [1];
  for (let i = 0; i < n; i += 1) {
    chances = Array.from({ length: i + 2 }, (_, k) => (chances[k - 1] ?? 0) * p + (chances[k] ?? 0) * (1 - p));
  }
  return chances;
}

/** Wilson 1927, JASA 22. */
function wilsonWidth(p: number, n: number): number {
  const z = 1.959964;
  return (2 * z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n))) / (1 + (z * z) / n);
}
