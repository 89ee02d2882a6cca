import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { fateOnArrival, summariseGroup } from '../../workflows/algorithms/group-report.ts';
import { rewardOf } from '../../workflows/algorithms/reward.ts';
import { toRolloutReport } from '../../workflows/algorithms/rollout-end.ts';
import { admissible, staleness } from '../../workflows/algorithms/staleness.ts';
import type { RolloutReport } from '../../workflows/contracts/group.ts';
import { type Outcome, outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import { type RolloutResult, stages } from '../../workflows/contracts/rollout.ts';

const reward = fc.double({ min: 0, max: 1, noNaN: true });
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const near = (a: number, b: number, within = 1e-9): boolean => Math.abs(a - b) <= within;
const count = fc.nat({ max: 40 });

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
      waitedSeconds: 3_600.125,
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
      waitedSeconds: 3_600.125,
      sandboxSeconds: { docker: 12_345.678 },
      evaluationSeconds: 1_234.567,
    },
  };

  it('fits into history with the usual eight rollouts, whatever their traces hold', () => {
    const reports = Array.from({ length: 8 }, () => toRolloutReport(result));
    assert.ok(JSON.stringify(reports).length < 8_000, `${JSON.stringify(reports).length} bytes`);
    assert.equal(reports[0]?.trace?.segments, 500);
    assert.ok(!('counts' in (reports[0]?.trace ?? {})));
  });
});
