import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { advantageRules } from '../../workflows/algorithms/advantages.ts';
import { fateInStep, fateOnArrival, spreadOf, summariseGroup } from '../../workflows/algorithms/group-report.ts';
import { normalise, tokenWeight } from '../../workflows/algorithms/normalise.ts';
import { rewardOf } from '../../workflows/algorithms/reward.ts';
import { toRolloutReport } from '../../workflows/algorithms/rollout-end.ts';
import { admissible, staleness } from '../../workflows/algorithms/staleness.ts';
import type { RolloutReport } from '../../workflows/contracts/group.ts';
import { type Outcome, outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import { type RolloutResult, stages } from '../../workflows/contracts/rollout.ts';
import { training } from '../../workflows/contracts/run.ts';

const reward = fc.double({ min: 0, max: 1, noNaN: true });
const rewards = fc.array(reward, { minLength: 1, maxLength: 32 });
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const near = (a: number, b: number, within = 1e-9): boolean => Math.abs(a - b) <= within;
const count = fc.nat({ max: 40 });

describe('advantages', () => {
  for (const [name, rule] of Object.entries(advantageRules)) {
    it(`by ${name} sum to 0, keep the order of the rewards, and ignore a common offset`, () => {
      fc.assert(
        fc.property(rewards, reward, (given, shift) => {
          const values = rule(given);
          const shifted = rule(given.map((one) => one + shift));
          const ordered = given.every((a, i) =>
            given.every((b, j) => a <= b + 1e-6 || (values[i] ?? 0) >= (values[j] ?? 0)),
          );
          // The differences of rewards that differ only by rounding are noise, which grpo would amplify.
          const spread = Math.max(...given) - Math.min(...given) > 1e-4;
          const same = !spread || values.every((value, i) => near(value, shifted[i] ?? Number.NaN, 1e-6));
          return near(sum(values), 0, 1e-6) && ordered && same;
        }),
      );
    });

    it(`by ${name} are exactly 0 if all rewards are equal, up to rounding errors, and 0 is no variance`, () => {
      const flat = (given: readonly number[]): boolean => {
        const counted = normalise(
          { rollouts: given.map((value) => ({ group: 0, reward: value })), segments: [] },
          training.parse({ advantage: name }),
        );
        const zeros = [...rule(given), ...counted.advantages].every((one) => one === 0);
        return zeros && counted.zeroVarianceShare === 1 && fateInStep(spreadOf(given), 'drop') === 'zero-variance';
      };
      fc.assert(fc.property(reward, fc.integer({ min: 1, max: 32 }), (value, k) => flat(Array(k).fill(value))));
      // A sum of the same scores in another order.
      assert.ok(flat([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, 0.6]));
    });
  }

  it('by grpo have a standard deviation of 1 and do not depend on the scale of rewards', () => {
    fc.assert(
      fc.property(rewards, fc.double({ min: 0.5, max: 100, noNaN: true }), (given, scale) => {
        if (Math.max(...given) - Math.min(...given) < 1e-3) return true;
        const values = advantageRules.grpo(given);
        const scaled = advantageRules.grpo(given.map((one) => one * scale));
        const deviation = Math.sqrt(sum(values.map((value) => value ** 2)) / values.length);
        return near(deviation, 1, 1e-3) && values.every((value, i) => near(value, scaled[i] ?? Number.NaN, 1e-3));
      }),
    );
  });

  it('by rloo are those by dr-grpo times k / (k − 1)', () => {
    fc.assert(
      fc.property(fc.array(reward, { minLength: 2, maxLength: 32 }), (given) => {
        const plain = advantageRules['dr-grpo'](given);
        const factor = given.length / (given.length - 1);
        return advantageRules.rloo(given).every((value, i) => near(value, factor * (plain[i] ?? Number.NaN)));
      }),
    );
  });
});

describe('token weights', () => {
  const rollouts = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 40 });
  const weigh = (aggregation: 'rollout-mean' | 'token-mean', tokens: readonly number[]) =>
    tokens.map((rolloutTokens) =>
      tokenWeight(aggregation, { rollouts: tokens.length, batchTokens: sum(tokens), rolloutTokens }),
    );

  it('of a batch sum to 1 over its trained tokens', () => {
    fc.assert(
      fc.property(fc.constantFrom('rollout-mean' as const, 'token-mean' as const), rollouts, (aggregation, tokens) =>
        near(sum(weigh(aggregation, tokens).map((weight, i) => weight * (tokens[i] ?? 0))), 1),
      ),
    );
  });

  it('weigh rollouts equally by rollout-mean, and tokens equally by token-mean', () => {
    fc.assert(
      fc.property(rollouts, (tokens) => {
        const byRollout = weigh('rollout-mean', tokens).map((weight, i) => weight * (tokens[i] ?? 0));
        const byToken = weigh('token-mean', tokens);
        return (
          byRollout.every((one) => near(one, 1 / tokens.length)) && byToken.every((one) => near(one, byToken[0] ?? 0))
        );
      }),
    );
  });

  it('are 0 if nothing is trained, never infinite', () => {
    for (const aggregation of ['rollout-mean', 'token-mean'] as const) {
      assert.equal(tokenWeight(aggregation, { rollouts: 3, batchTokens: 0, rolloutTokens: 0 }), 0);
    }
  });
});

describe('admission', () => {
  const options = fc.record({
    inFlight: count,
    ready: count,
    inStep: count,
    stepsLeft: count,
    groupsPerStep: fc.integer({ min: 1, max: 8 }),
    maxStaleness: fc.nat({ max: 4 }),
  });

  it('admits as many groups as staleness allows and the remaining steps need', () => {
    fc.assert(
      fc.property(options, (state) => {
        const more = admissible(state);
        const held = state.inFlight + state.ready + state.inStep + more;
        const useful = state.inFlight + state.ready + more;
        const bounded = held <= (state.maxStaleness + 1) * state.groupsPerStep;
        const needed = useful <= state.stepsLeft * state.groupsPerStep;
        return more >= 0 && (more === 0 || (bounded && needed));
      }),
    );
  });

  it('always admits a group to a run that would otherwise wait forever', () => {
    fc.assert(
      fc.property(options, ({ stepsLeft, ready, ...rest }) => {
        const waiting = ready % rest.groupsPerStep;
        const state = { ...rest, ready: waiting, inFlight: 0, inStep: 0, stepsLeft: stepsLeft + 1 };
        return waiting + admissible(state) >= rest.groupsPerStep;
      }),
    );
  });

  it('gives a group of the newest version staleness 0', () => {
    fc.assert(fc.property(count, (version) => staleness(version + 1, version) === 0));
  });
});

describe('the fate of a group', () => {
  const counts = fc.record(
    Object.fromEntries(outcomes.map((outcome) => [outcome, count])) as Record<Outcome, typeof count>,
  );
  const summary = (given: Record<Outcome, number>) => ({
    runKey: 'run',
    index: 0,
    minVersion: 0,
    meanReward: null,
    outcomes: { ...zeroCount(outcomes), ...given },
  });

  it('is undecided if rewards can be compared, and otherwise names the most frequent cause', () => {
    fc.assert(
      fc.property(counts, fc.integer({ min: 1, max: 32 }), (given, k) => {
        const fate = fateOnArrival(summary(given), k);
        if (given.scored >= Math.min(2, k)) return fate === null;
        const causes = [given['invalid-task'], given.infra, given.stale, given.cancelled];
        return fate !== null && given[fate as Outcome] === Math.max(...causes);
      }),
    );
  });
});

describe('the summary of a group', () => {
  const report = fc.record({
    outcome: fc.constantFrom(...outcomes),
    reward,
    version: fc.option(fc.nat({ max: 20 })),
  });
  const asRollout = ({
    outcome,
    reward: value,
    version,
  }: {
    outcome: Outcome;
    reward: number;
    version: number | null;
  }) =>
    ({
      rollout: 'r',
      workflowId: 'w',
      outcome,
      stop: null,
      failure: null,
      stageSeconds: {},
      reward: outcome === 'scored' ? value : null,
      trace: version === null ? null : { minVersion: version },
    }) as RolloutReport;

  it('counts each rollout once, averages only scored rewards, and has the version of the oldest token', () => {
    fc.assert(
      fc.property(fc.array(report, { maxLength: 16 }), fc.nat({ max: 20 }), (given, admittedVersion) => {
        const rollouts = given.map(asRollout);
        const group = { group: 'g', index: 3, runKey: 'k', task: 't', admittedVersion, rollouts };
        const { outcomes: counts, meanReward, minVersion } = summariseGroup(group, 'k');
        const scored = rollouts.flatMap((one) => one.reward ?? []);
        const versions = given.flatMap(({ version }) => version ?? []);
        return (
          sum(Object.values(counts)) === given.length &&
          (scored.length === 0 ? meanReward === null : near(meanReward ?? Number.NaN, sum(scored) / scored.length)) &&
          minVersion === (versions.length === 0 ? admittedVersion : Math.min(...versions))
        );
      }),
    );
  });
});

describe('the reward of a verdict', () => {
  const log = { digest: '0', size: 0, mediaType: 'text/plain' };
  const verdict = { exitCode: 0, passed: 0, failed: 0, log, subject: '', grader: 'v1' };

  it('is the number that the tests wrote, and 0 for failures of the solution', () => {
    fc.assert(fc.property(reward, (value) => rewardOf({ ...verdict, kind: 'graded', value }, 'fraction') === value));
    for (const kind of ['timeout', 'no-reward', 'refused', 'patch-failed'] as const) {
      assert.equal(rewardOf({ ...verdict, kind, value: null }, 'fraction'), 0);
    }
  });
});

describe('a report of a group', () => {
  const digest = 'f'.repeat(64);
  const blob = { digest, size: 123_456_789, mediaType: 'application/json' };
  const result: RolloutResult = {
    rollout: '01a20124-0a80-773a-9d80-091701bec4cb',
    workflowId: 'training-run-of-a-long-name-group-1234-rollout-7',
    task: 'generated:train/1/0',
    agent: 'mini',
    outcome: 'scored',
    reward: 0.123_456_789,
    stop: 'submitted',
    failure: null,
    trace: {
      trace: blob,
      turns: 1_000,
      segments: 500,
      sampledTokens: 1_000_000,
      promptTokens: 1_000_000_000,
      engineSeconds: 3_600.125,
      minVersion: 1_000,
      maxVersion: 1_000,
      contextOverflow: false,
      turnLimit: false,
      engineFailures: 100,
      counts: {
        branches: { main: 100, side: 100, 'sub-agent': 100, compaction: 100, fork: 100 },
        unclear: 100,
        dropped: 100,
        droppedTokens: 1_000_000,
        maskedTurns: 100,
        forks: 100,
        aborts: 100,
        echoes: { text: 1_000, reasoning: 1_000, arguments: 1_000, 'call-ids': 1_000 },
      },
    },
    diff: null,
    verdict: null,
    agentLog: blob,
    bundle: blob,
    epochs: 1,
    stageSeconds: Object.fromEntries(stages.map((stage) => [stage, 1_234.567])),
    cost: {
      promptTokens: 1_000_000_000,
      sampledTokens: 1_000_000,
      engineSeconds: 3_600.125,
      sandboxSeconds: { docker: 12_345.678 },
      evaluationSeconds: 1_234.567,
    },
  };

  it('fits into history with the usual eight rollouts, whatever their traces hold', () => {
    const reports = Array.from({ length: 8 }, () => toRolloutReport(result));
    assert.ok(JSON.stringify(reports).length < 8_000, `${JSON.stringify(reports).length} bytes`);
    assert.equal(reports[0]?.trace?.segments, 500);
    assert.equal(reports[0]?.trace?.counts, undefined);
  });
});
