import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { admissible, staleness } from '../../workflows/algorithms/staleness.ts';
import { outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import type { RunInput, RunRequest } from '../../workflows/contracts/run.ts';
import type { RunState } from '../../workflows/contracts/run-state.ts';
import type { RunTally } from '../../workflows/run/run-tally.ts';
import { createRunTally } from '../../workflows/run/tally.ts';
import { groupSummary, stepResult } from '../helpers/run-events.ts';
import { inputOfRun } from '../helpers/run-input.ts';

const sum = (record: Readonly<Record<string, number>>): number => Object.values(record).reduce((a, b) => a + b, 0);

const startedAt = 1_000;

/** The events of a run, in any order. `pick` chooses among the groups in flight. */
const event = fc.oneof(
  fc.record({ kind: fc.constant('arrive' as const), pick: fc.nat(), scored: fc.nat({ max: 2 }) }),
  fc.record({ kind: fc.constantFrom('step' as const, 'fail' as const, 'skip' as const, 'carry' as const) }),
);
const shape = fc.record({
  groupsPerStep: fc.integer({ min: 1, max: 4 }),
  maxStaleness: fc.nat({ max: 3 }),
  onStale: fc.constantFrom('wait' as const, 'cancel' as const, 'withhold' as const, 'keep' as const),
});

/** A run in miniature, driven by events. */
function createRun(input: RunInput) {
  let tally = createRunTally(input, null, startedAt);
  let inStep: readonly number[] = [];
  const trained: { readonly step: number; readonly index: number; readonly admitted: number }[] = [];
  const admittedAt = new Map<number, number>();
  const admit = (): void => {
    const free = admissible({
      inFlight: tally.inFlight.size,
      ready: tally.ready.size,
      inStep: tally.inStep,
      groupsPerStep: input.groupsPerStep,
      maxStaleness: input.maxStaleness,
      stepsLeft: input.steps - tally.step - (tally.inStep > 0 ? 1 : 0),
    });
    for (let i = 0; i < free; i += 1) admittedAt.set(tally.admit(), tally.policyVersion);
  };
  const arrive = (index: number, scored: number): void => {
    const counts = { scored, infra: input.rolloutsPerGroup - scored };
    const summary = groupSummary(index, tally.inFlight.get(index) ?? 0, counts);
    tally.arrive(summary, false);
    tally.arrive(summary, false);
  };
  const finish = (): void => {
    if (inStep.length === 0) return;
    const step = tally.step + 1;
    trained.push(...inStep.map((index) => ({ step, index, admitted: admittedAt.get(index) ?? 0 })));
    tally.finishStep(stepResult(step, { trained: inStep.length }));
    inStep = [];
  };
  const next = (): void => {
    if (inStep.length === 0 && tally.step < input.steps) inStep = tally.takeForStep()?.groups ?? [];
    admit();
  };
  admit();
  return {
    get tally() {
      return tally;
    },
    trained,
    inStep: () => tally.inStep,
    arrive(pick: number, scored: number): void {
      const inFlight = [...tally.inFlight.keys()];
      if (inFlight.length > 0) arrive(inFlight[pick % inFlight.length] ?? 0, scored);
      next();
    },
    step(): void {
      finish();
      next();
    },
    fail(): void {
      // A step that fails is repeated with the same groups.
      const before = inStep;
      if (before.length > 0) tally.failStep('out of memory', 'paused');
      inStep = [];
      next();
      if (before.length > 0) assert.deepEqual(inStep, before);
    },
    skip(): void {
      if (inStep.length === 0) return;
      const { groups, updates } = tally;
      const { last } = updates;
      const skipped = groups.skipped + inStep.length;
      tally.failStep('out of memory', 'paused');
      assert.ok(tally.hasFailedStep);
      assert.equal(tally.skipStep(), inStep.length);
      assert.equal(tally.pausedBecause, null);
      const step = tally.step + 1;
      assert.partialDeepStrictEqual(tally.takeForStep(), { groups: inStep, failure: 'out of memory', isSkipped: true });
      tally.finishStep(stepResult(step, { skipped: inStep.length }, { skippedBecause: 'out of memory' }));
      assert.deepEqual([tally.groups.skipped, tally.step, tally.policyVersion], [skipped, step, step]);
      assert.deepEqual([tally.skippedSteps.at(-1), tally.updates.last], [step, last]);
      inStep = [];
      next();
    },
    carry(): void {
      tally = createRunTally(input, JSON.parse(JSON.stringify(tally.state())), startedAt + 1);
    },
  };
}

describe('the tally of a run', () => {
  it('takes the groups of a pinned step instead of its own, which are ready again', () => {
    const input = inputOfRun({ steps: 9, groupsPerStep: 2, rolloutsPerGroup: 2, maxStaleness: 3, onStale: 'keep' });
    let tally = createRunTally(input, null, startedAt);
    const arrive = (index: number): void => tally.arrive(groupSummary(index, 0, { scored: 2 }), false);
    const accounted = (): number => tally.inFlight.size + tally.ready.size + tally.inStep + sum(tally.groups);
    for (let index = 0; index < 4; index += 1) tally.admit();
    for (const index of [0, 1, 2]) arrive(index);
    assert.deepEqual(tally.takeForStep()?.groups, [0, 1]);
    // Before the restore, groups 1, 2, 3 and 4 had ended first; group 4 was not admitted again yet.
    const pinned = [1, 2, 3, 4].map((index) => [index, 'trained'] as const);
    tally.finishStep(stepResult(1, { trained: 4 }, { pinned }));
    assert.deepEqual([[...tally.ready], [...tally.inFlight.keys()], tally.groups.trained], [[[0, 0]], [3], 2]);
    assert.equal(accounted(), 4);
    tally = createRunTally(input, JSON.parse(JSON.stringify(tally.state())), startedAt + 1);
    tally.admit();
    tally.admit();
    for (const index of [3, 4, 5]) arrive(index);
    assert.deepEqual([[...tally.ready.keys()], tally.groups.trained, accounted()], [[0, 5], 4, 6]);
    assert.deepEqual(tally.takeForStep()?.groups, [0, 5]);
    assert.deepEqual(tally.takeForStep()?.dropped, []);
  });

  it('accounts for every group and every rollout exactly once, in any order of events', () => {
    fc.assert(
      fc.property(shape, fc.array(event, { maxLength: 120 }), (given, events) => {
        const run = createRun(inputOfRun({ ...given, steps: 6, rolloutsPerGroup: 2 }));
        return events.every((one) => {
          if (one.kind === 'arrive') run.arrive(one.pick, one.scored);
          else run[one.kind]();
          const { tally } = run;
          const accounted = tally.inFlight.size + tally.ready.size + run.inStep() + sum(tally.groups);
          const rollouts = sum(tally.rollouts) + 2 * tally.inFlight.size;
          return accounted === tally.groupsStarted && rollouts === 2 * tally.groupsStarted;
        });
      }),
    );
  });

  it('never trains on a stale group, unless the run keeps stale groups', () => {
    fc.assert(
      fc.property(shape, fc.array(event, { maxLength: 200 }), (given, events) => {
        const run = createRun(inputOfRun({ ...given, steps: 6, rolloutsPerGroup: 2 }));
        for (const one of events) {
          if (one.kind === 'arrive') run.arrive(one.pick, one.scored);
          else run[one.kind]();
        }
        return run.trained.every(
          ({ step, admitted }) => given.onStale === 'keep' || staleness(step, admitted) <= given.maxStaleness,
        );
      }),
    );
  });

  it('wastes no group if groups end in order', () => {
    fc.assert(
      fc.property(shape, fc.array(fc.constantFrom('arrive', 'step', 'carry'), { maxLength: 200 }), (given, events) => {
        const run = createRun(inputOfRun({ ...given, steps: 6, rolloutsPerGroup: 2 }));
        for (const one of events) {
          if (one === 'arrive') run.arrive(0, 2);
          else run[one as 'step' | 'carry']();
        }
        return run.tally.groups.stale === 0 && run.tally.groups.withheld === 0;
      }),
    );
  });

  it('makes fewer groups too stale by a step than it keeps in flight, in any order of events', () => {
    const events = fc.array(fc.constantFrom('newest', 'oldest', 'step', 'carry'), { minLength: 50, maxLength: 400 });
    fc.assert(
      fc.property(shape, events, (given, events) => {
        const pauseAtStaleGroups = (given.maxStaleness + 1) * given.groupsPerStep;
        const run = createRun(inputOfRun({ ...given, steps: 12, rolloutsPerGroup: 2, pauseAtStaleGroups }));
        return events.every((one) => {
          if (one === 'newest') run.arrive(run.tally.inFlight.size - 1, 2);
          else if (one === 'oldest') run.arrive(0, 2);
          else run[one as 'step' | 'carry']();
          return run.tally.inStep > 0 || run.tally.staleWatch.reasonToPause(run.tally.policyVersion) === null;
        });
      }),
    );
  });
});

describe('groups that are too stale to train on', () => {
  const small: Partial<RunRequest> = { groupsPerStep: 1, rolloutsPerGroup: 2, maxStaleness: 0 };
  const scored = { ...zeroCount(outcomes), scored: 2 };

  /** Creates the tally of a run after five steps. */
  function afterSteps(request: Partial<RunRequest>): RunTally {
    const input = inputOfRun({ ...small, ...request });
    const state = createRunTally(input, null, startedAt).state();
    return createRunTally(input, { ...state, step: 5, policyVersion: 5 }, startedAt);
  }

  const stale = { ...zeroCount(outcomes), stale: 2 };

  function end(tally: RunTally, version: number, counts = scored, index = tally.admit()): void {
    tally.arrive(groupSummary(index, version, counts), false);
    tally.takeForStep();
  }

  const reason = (tally: RunTally): string | null => tally.staleWatch.reasonToPause(tally.policyVersion);

  /** Returns the number of groups of version 2 after which the run has a reason to pause. */
  function untilReason(tally: RunTally): number {
    for (let count = 1; count < 1_000; count += 1) {
      end(tally, 2);
      if (reason(tally) !== null) return count;
    }
    throw new Error('expected a reason to pause after fewer groups than 1,000');
  }

  it('are a reason to pause after twice as many as the run keeps in flight, and at least 8', () => {
    assert.equal(untilReason(afterSteps({})), 8);
    assert.equal(untilReason(afterSteps({ groupsPerStep: 3, onStale: 'withhold' })), 8);
    assert.equal(untilReason(afterSteps({ groupsPerStep: 8, maxStaleness: 1 })), 32);
    assert.equal(untilReason(afterSteps({ groupsPerStep: 8, maxStaleness: 1, pauseAtStaleGroups: 3 })), 3);
  });

  it('are named in the reason with the versions', () => {
    const tally = afterSteps({ pauseAtStaleGroups: 2 });
    end(tally, 1);
    end(tally, 2);
    assert.match(
      reason(tally) ?? '',
      /^no step was made while 2 groups .* \(the last was sampled by version 2, the policy is at 5\); check that .*, then resume$/,
    );
  });

  it('are counted beside groups that end as infra, and those that the run has stopped', () => {
    const tally = afterSteps({ pauseAtStaleGroups: 3 });
    end(tally, 2);
    end(tally, 5, { ...zeroCount(outcomes), infra: 2 });
    const stopped = tally.admit();
    tally.stops(stopped);
    end(tally, 2, stale, stopped);
    assert.equal(reason(tally), null);
    end(tally, 2);
    assert.notEqual(reason(tally), null);
  });

  it('are not those that were stopped by hand, unless the run has stopped them, too, in an earlier execution', () => {
    const input = inputOfRun({ ...small, pauseAtStaleGroups: 1 });
    const before = createRunTally(input, null, startedAt);
    const [byRun, byHand] = [before.admit(), before.admit()];
    before.stops(byRun);
    const tally = createRunTally(input, JSON.parse(JSON.stringify(before.state())), startedAt);
    end(tally, 0, stale, byHand);
    assert.deepEqual([tally.groups.stale, reason(tally)], [1, null]);
    end(tally, 0, stale, byRun);
    assert.deepEqual([tally.groups.stale, reason(tally) === null], [2, false]);
  });

  it('are forgotten after a step', () => {
    const tally = afterSteps({ pauseAtStaleGroups: 2 });
    end(tally, 2);
    end(tally, 5);
    assert.equal(tally.inStep, 1);
    tally.finishStep(stepResult(6, { trained: 1 }));
    assert.equal(untilReason(tally), 2);
  });

  it('are carried on', () => {
    const tally = afterSteps({ pauseAtStaleGroups: 3 });
    end(tally, 2);
    const carried: RunState = JSON.parse(JSON.stringify(tally.state()));
    assert.deepEqual(carried.staleGroups, { count: 1, lastVersion: 2 });
    const input = inputOfRun({ ...small, pauseAtStaleGroups: 3 });
    assert.equal(untilReason(createRunTally(input, carried, startedAt)), 2);
  });
});
