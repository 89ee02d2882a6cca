import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  groupDurations,
  quarterAmong,
  secondsOf,
  slowQuarterWarning,
} from '../../workflows/algorithms/group-durations.ts';
import type { EndedGroup, SettledGroup } from '../../workflows/contracts/ended-group.ts';
import { type Fate, fates } from '../../workflows/contracts/outcome.ts';
import type { RunState } from '../../workflows/contracts/run-state.ts';
import type { RunTally } from '../../workflows/run/run-tally.ts';
import { createRunTally } from '../../workflows/run/tally.ts';
import { groupSummary, stepResult } from '../helpers/run-events.ts';
import { inputOfRun } from '../helpers/run-input.ts';

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Makes groups that take 1, 2, 3 … seconds. */
const groupsOf = (fatesOf: readonly Fate[]): EndedGroup[] =>
  fatesOf.map((fate, position) => ({ fate, seconds: position + 1, meanReward: 0.5, rewards: 8 }));
const times = (count: number, fate: Fate): Fate[] => Array(count).fill(fate);

describe('the groups of a run by duration', () => {
  it('are divided into quarters from the fastest to the slowest, each group in one', () => {
    const ended = fc.record({
      fate: fc.constantFrom(...fates),
      seconds: fc.double({ min: 0, max: 1e4, noNaN: true }),
      meanReward: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
      rewards: fc.nat({ max: 8 }),
    });
    fc.assert(
      fc.property(fc.array(ended, { minLength: 8, maxLength: 200 }), (groups) => {
        const { quarters } = groupDurations(groups);
        const sizes = quarters.map((quarter) => quarter.groups);
        assert.equal(sum(sizes), groups.length);
        assert.ok(Math.max(...sizes) - Math.min(...sizes) <= 1);
        for (const quarter of quarters) assert.equal(sum(Object.values(quarter.fates)), quarter.groups);
        const longest = quarters.map(({ seconds }) => seconds);
        assert.deepEqual(
          longest,
          longest.toSorted((a, b) => a - b),
        );
      }),
    );
    assert.deepEqual(groupDurations(groupsOf(times(7, 'trained'))).quarters, []);
  });

  it('are each in one quarter of all, and equal ones share the middle of their ranks', () => {
    const all = Array.from({ length: 12 }, (_, at) => at);
    assert.deepEqual(
      all.map((seconds) => quarterAmong(seconds, all)),
      [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4],
    );
    assert.equal(quarterAmong(5, Array(9).fill(5)), 3);
    assert.equal(quarterAmong(5, Array(7).fill(5)), null);
  });

  it('have the mean reward of all scored rollouts beside that of the groups in steps', () => {
    const group = (fate: Fate, meanReward: number | null, rewards: number) => ({
      fate,
      seconds: 1,
      meanReward,
      rewards,
    });
    const groups = [
      group('trained', 0.75, 4),
      group('stale', 0, 2),
      group('infra', null, 0),
      group('withheld', 0.5, 2),
    ];
    const { scoredReward, stepReward } = groupDurations(groups);
    assert.deepEqual([scoredReward, stepReward], [(0.75 * 4 + 0.5 * 2) / 8, 0.75]);
    assert.deepEqual([groupDurations([]).scoredReward, groupDurations([]).stepReward], [null, null]);
  });

  it('last as long as their slowest rollout, without the wait for a slot', () => {
    const rollouts = [{ placeRollout: 100, awaitAgent: 2, evaluate: 1 }, { awaitAgent: 5 }];
    assert.equal(secondsOf(rollouts.map((stageSeconds) => ({ stageSeconds }))), 5);
    assert.equal(secondsOf([]), 0);
  });
});

describe('the warning about the slowest quarter', () => {
  const warning = (fatesOf: readonly Fate[]) => slowQuarterWarning(groupDurations(groupsOf(fatesOf)));

  it('names the shares if steps took fewer of it', () => {
    const slow = [...times(12, 'trained'), ...times(20, 'stale')];
    assert.match(
      warning([...times(90, 'trained'), ...times(6, 'zero-variance'), ...slow]) ?? '',
      /^steps took 38 % of the slowest quarter of 128 groups and 100 % of the others, so .* less often/,
    );
  });

  it('is absent if all quarters fare alike, the difference is small, or the groups are few', () => {
    assert.equal(warning(times(128, 'trained')), null);
    assert.equal(warning(Array.from({ length: 128 }, (_, at) => (at % 5 === 0 ? 'infra' : 'trained'))), null);
    assert.equal(warning([...times(125, 'trained'), ...times(3, 'stale')]), null, 'nine points');
    assert.equal(warning([...times(7, 'trained'), 'stale']), null, 'half of two groups is no evidence');
    assert.equal(warning([]), null);
  });
});

describe('the last groups of a run', () => {
  const input = inputOfRun({ groupsPerStep: 2, rolloutsPerGroup: 8, training: { zeroVariance: 'drop' } });
  const scored = { scored: 8 };

  function end(tally: RunTally, seconds: number, rest: Parameters<typeof groupSummary>[3] = {}): void {
    tally.arrive(groupSummary(tally.admit(), 0, scored, { seconds, rewards: 8, meanReward: 0.5, ...rest }), false);
  }

  it('have a fate as soon as they are dropped, or the step that takes them is made', () => {
    const tally = createRunTally(input, null, 0);
    end(tally, 1);
    end(tally, 2, { spread: 'all-0', meanReward: 0 });
    end(tally, 3, { outcomes: groupSummary(0, 0, { infra: 8 }).outcomes, meanReward: null, rewards: 0 });
    const settled = () => tally.recentGroups.settled.map(({ fate, seconds }) => [fate, seconds]);
    assert.deepEqual(settled(), [['infra', 3]]);
    tally.takeForStep();
    tally.finishStep(stepResult(1, { trained: 1, 'zero-variance': 1 }));
    assert.deepEqual(settled(), [
      ['trained', 1],
      ['zero-variance', 2],
      ['infra', 3],
    ]);
  });

  it('are counted once each, with the quarter of their duration, however many a step takes', () => {
    const counted: SettledGroup[] = [];
    const wide = inputOfRun({ groupsPerStep: 120, rolloutsPerGroup: 8, training: { zeroVariance: 'drop' } });
    const tally = createRunTally(wide, null, 0, (group) => counted.push(group));
    for (let group = 0; group < 120; group += 1)
      end(tally, group, group < 30 ? { spread: 'all-1', meanReward: 1 } : {});
    assert.equal(counted.length, 0);
    tally.takeForStep();
    tally.finishStep(stepResult(1, { trained: 90, 'zero-variance': 30 }));
    assert.equal(counted.length, 120);
    for (const quarter of [1, 2, 3, 4]) {
      const own = counted.filter((group) => group.quarter === quarter);
      const fate = quarter === 1 ? 'zero-variance' : 'trained';
      assert.deepEqual([own.length, new Set(own.map((group) => group.fate))], [30, new Set([fate])]);
    }
    assert.equal(tally.recentGroups.settled.length, 96);
    end(tally, 1);
    tally.dropReady('cancelled');
    assert.deepEqual(counted.at(-1), { fate: 'cancelled', seconds: 1, meanReward: 0.5, rewards: 8, quarter: 1 });
  });

  it('are not trained by a step that makes no update, also if the run keeps equal rewards', () => {
    const keeping = inputOfRun({ groupsPerStep: 1, rolloutsPerGroup: 8, training: { zeroVariance: 'keep' } });
    const tally = createRunTally(keeping, null, 0);
    end(tally, 1, { spread: 'all-0', meanReward: 0 });
    tally.takeForStep();
    tally.finishStep(stepResult(1, { 'zero-variance': 1 }));
    assert.deepEqual(
      tally.recentGroups.settled.map(({ fate }) => fate),
      ['zero-variance'],
    );
  });

  it('are 96 at most and are carried on in less than 8 KB', () => {
    const tally = createRunTally(input, { ...createRunTally(input, null, 0).state(), groupsStarted: 100_000 }, 0);
    for (let group = 0; group < 200; group += 1) {
      end(tally, 3_456.789, { spread: 'equal', meanReward: 1 / 3 });
      if (tally.takeForStep() !== null) tally.finishStep(stepResult(tally.step + 1, { 'zero-variance': 2 }));
    }
    const state = JSON.stringify(tally.state());
    assert.ok(state.length < 8_000, `${state.length} bytes`);
    const carried: RunState = JSON.parse(state);
    assert.equal(carried.recentGroups.length, 96);
    assert.deepEqual(createRunTally(input, carried, 0).recentGroups.settled, tally.recentGroups.settled);
  });
});
