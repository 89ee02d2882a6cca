import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addFlags, countFlags, flagsText, noFlags } from '../../workflows/algorithms/flags.ts';
import { fateOnArrival, summariseGroup } from '../../workflows/algorithms/group-report.ts';
import { countActions, countedReward } from '../../workflows/algorithms/on-flag.ts';
import { risingText, risingTricks, withRecent } from '../../workflows/algorithms/rising-tricks.ts';
import type { FlaggedShare } from '../../workflows/contracts/flags.ts';
import type { RolloutReport } from '../../workflows/contracts/group.ts';
import { runInput } from '../../workflows/contracts/run.ts';
import { sweepInput } from '../../workflows/contracts/sweep.ts';

const onFlag = { 'program-shadow': 'zero', exit: 'exclude', tests: 'keep' } as const;
const none = { reward: 1 };
const tested = { reward: 1, flags: ['tests'] as const };
const shadowed = { reward: 1, flags: ['program-shadow', 'exit'] as const };
const exited = { reward: 0.5, flags: ['tests', 'exit'] as const };
const failed = { reward: null, flags: ['exit'] as const };

describe('the reward of a flagged rollout', () => {
  it('counts as it was measured by default, and else as the run says for its tricks, zero before exclude', () => {
    const all = [none, tested, shadowed, exited, failed];
    assert.deepEqual(
      all.map((one) => countedReward(one)),
      [1, 1, 1, 0.5, null],
    );
    assert.deepEqual(
      all.map((one) => countedReward(one, onFlag)),
      [1, 1, 0, null, null],
    );
  });

  it('counts if it is 0, so that no agent escapes its 0 by a flag', () => {
    const caught = { reward: 0, flags: ['program-shadow', 'exit'] as const };
    for (const rule of [onFlag, { exit: 'exclude' } as const]) {
      assert.equal(countedReward(caught, rule), 0);
      assert.deepEqual(countActions([caught], rule), {});
    }
  });

  it('is counted by the trick for which it was changed', () => {
    const counted = countActions([none, tested, shadowed, exited, exited, failed], onFlag);
    assert.deepEqual(counted, { excluded: { exit: 2 }, zeroed: { 'program-shadow': 1 } });
    assert.deepEqual(countActions([tested], onFlag), {});
    const flags = { ...countFlags([shadowed.flags, exited.flags, exited.flags]), ...counted };
    assert.equal(
      flagsText(addFlags(noFlags, flags)),
      '3 rollouts: exit 3, tests 2, program-shadow 1; left out for exit 2; counted as 0 for program-shadow 1',
    );
    assert.deepEqual(addFlags(flags, flags).excluded, { exit: 4 });
  });

  it('leaves a group without a comparison if fewer than two are left', () => {
    const report = (measured: readonly { reward: number | null; flags?: readonly ('exit' | 'tests')[] }[]) => ({
      group: 'g',
      index: 0,
      runKey: 'k',
      task: 't',
      admittedVersion: 0,
      rollouts: measured.map(
        (one, index): RolloutReport => ({
          rollout: `r${index}`,
          workflowId: `r${index}`,
          outcome: one.reward === null ? 'infra' : 'scored',
          stop: null,
          failure: null,
          trace: null,
          stageSeconds: {},
          ...one,
        }),
      ),
    });
    const exclude = { exit: 'exclude' } as const;
    const two = summariseGroup(report([none, { reward: 1, flags: ['exit'] }, { reward: 0 }]), 'k', exclude);
    assert.deepEqual([two.meanReward, two.outcomes.scored, fateOnArrival(two, 3)], [0.5, 3, null]);
    const one = summariseGroup(
      report([none, { reward: 1, flags: ['exit'] }, { reward: 1, flags: ['exit'] }]),
      'k',
      exclude,
    );
    assert.equal(fateOnArrival(one, 3), 'excluded');
    const lost = summariseGroup(
      report([{ reward: null }, { reward: null }, { reward: 1, flags: ['exit'] }]),
      'k',
      exclude,
    );
    assert.equal(fateOnArrival(lost, 3), 'infra');
  });

  it('is part of the input of runs and sweeps, which name an unknown trick or action', () => {
    const tasks = 'generated:train/1';
    for (const input of [runInput, sweepInput]) {
      assert.deepEqual(input.parse({ tasks, onFlag }).onFlag, onFlag);
      assert.equal(input.parse({ tasks }).onFlag, undefined);
      assert.match(
        String(input.safeParse({ tasks, onFlag: { shadow: 'zero' } }).error),
        /expected actions by trick, of tests, /,
      );
      assert.match(
        String(input.safeParse({ tasks, onFlag: { exit: 'drop' } }).error),
        /expected one of keep, exclude, zero/,
      );
    }
  });
});

describe('a trick whose share rises', () => {
  const group = (flagged: number): FlaggedShare => ({ rollouts: 8, tricks: flagged === 0 ? {} : { exit: flagged } });
  const run = (flagged: readonly number[]) => {
    let recent: readonly FlaggedShare[] = [];
    for (const count of flagged) recent = withRecent(recent, group(count));
    const exit = flagged.reduce((sum, count) => sum + count, 0);
    return risingTricks(recent, { rollouts: 8 * flagged.length, tricks: { exit } });
  };
  const times = (count: number, flagged: number): number[] => Array.from({ length: count }, () => flagged);

  it('is named once its share in the last 64 rollouts is at least twice that before', () => {
    const [rising] = run([...times(16, 1), ...times(8, 2)]);
    assert.deepEqual(rising, { trick: 'exit', flagged: 16, rollouts: 64, flaggedBefore: 16, rolloutsBefore: 128 });
    assert.match(
      risingText(rising ?? assert.fail()),
      /16 of the last 64 rollouts are flagged for exit, and 16 of the 128 before/,
    );
    assert.equal(run([...times(16, 0), ...times(8, 1)]).length, 1);
  });

  it('is not named for a steady share, few rollouts, or few flags', () => {
    assert.deepEqual(run(times(40, 1)), []);
    assert.deepEqual(run([...times(7, 0), ...times(8, 8)]), []);
    assert.deepEqual(run([...times(20, 0), ...times(7, 1), 0]), []);
    assert.deepEqual(run([...times(20, 0), ...times(8, 8), ...times(24, 0)]), []);
  });
});
