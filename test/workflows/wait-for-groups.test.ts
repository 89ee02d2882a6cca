import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { admissible, staleness } from '../../workflows/algorithms/staleness.ts';
import type { RunInput, RunRequest } from '../../workflows/contracts/run.ts';
import { createRunTally } from '../../workflows/run/tally.ts';
import { groupSummary, stepResult } from '../helpers/run-events.ts';
import { inputOfRun } from '../helpers/run-input.ts';
import { logNormalTasks, simulate, twoKinds } from '../helpers/simulated-run.ts';

describe('a run whose steps wait for slow groups', () => {
  const request: RunRequest = { tasks: 'generated:train/1', steps: 100, groupsPerStep: 8 };
  const largestShift = (before: readonly number[], after: readonly number[]): number =>
    Math.max(...before.map((share, quarter) => Math.abs(share - (after[quarter] ?? 0))));

  it('waits by default', () => {
    assert.equal(inputOfRun({}).onStale, 'wait');
  });

  it('trains each quarter of the durations as often as it starts it, cancels nothing, and holds the bound', () => {
    const shape = fc.record({
      tasks: fc.oneof(
        fc.record({ sigma: fc.double({ min: 0, max: 1, noNaN: true }) }),
        fc.record({ share: fc.double({ min: 0, max: 1, noNaN: true }), factor: fc.integer({ min: 1, max: 10 }) }),
      ),
      maxStaleness: fc.nat({ max: 4 }),
      groupsPerStep: fc.constantFrom(1, 3, 8),
      seed: fc.nat(),
    });
    fc.assert(
      fc.property(shape, ({ tasks, maxStaleness, groupsPerStep, seed }) => {
        const given =
          'sigma' in tasks ? logNormalTasks(200, tasks.sigma, seed) : twoKinds(200, tasks.share, tasks.factor);
        const own = { ...request, maxStaleness, groupsPerStep };
        const { started, trained, untrained, largestStaleness } = simulate(given, own, seed);
        assert.ok(largestShift(started, trained) <= 0.02, `${started} → ${trained}`);
        assert.deepEqual([untrained, largestStaleness <= maxStaleness], [0, true]);
      }),
      { numRuns: 40 },
    );
  });

  it('differs in that from a run that cancels or withholds them', () => {
    for (const onStale of ['cancel', 'withhold'] as const) {
      const { started, trained } = simulate(logNormalTasks(200, 0.8, 7), { ...request, onStale }, 1);
      assert.ok(largestShift(started, trained) > 0.1, `${onStale}: ${started} → ${trained}`);
    }
  });
});

type Event =
  | { readonly kind: 'arrive'; readonly pick: number; readonly scored: number; readonly behind: number }
  | { readonly kind: 'step' | 'fail' | 'skip' | 'carry' | 'pause' };

const shape = fc.record({ groupsPerStep: fc.integer({ min: 1, max: 4 }), maxStaleness: fc.nat({ max: 3 }) });
const steps = 12;

/** The events of a run. `behind` is how much older than its admission a group is, because an engine had older weights. */
const eventsOf = (behind: number): fc.Arbitrary<Event[]> =>
  fc.array(
    fc.oneof(
      { weight: 3, arbitrary: arrival(behind) },
      { weight: 2, arbitrary: fc.constant({ kind: 'step' as const }) },
      fc.record({ kind: fc.constantFrom('fail' as const, 'skip' as const, 'carry' as const, 'pause' as const) }),
    ),
    { maxLength: 300 },
  );
const arrival = (behind: number) =>
  fc.record({
    kind: fc.constant('arrive' as const),
    pick: fc.nat(),
    scored: fc.constantFrom(0, 2, 2, 2),
    behind: fc.integer({ min: -2, max: behind }),
  });

/** The decisions of a run in the order of its loop. `starts` is the number of groups that its budget allows. */
function createRun(input: RunInput, starts = Number.POSITIVE_INFINITY) {
  let tally = createRunTally(input, null, 0);
  const trained: { readonly step: number; readonly version: number }[] = [];
  const versions = new Map<number, number>();
  let isPaused = false;
  const next = (): void => {
    if (isPaused) return;
    if (tally.step < input.steps) tally.takeForStep();
    const { groupsPerStep, maxStaleness } = input;
    const stepsLeft = input.steps - tally.step - (tally.inStep > 0 ? 1 : 0);
    const held = { inFlight: tally.inFlight.size, ready: tally.ready.size, inStep: tally.inStep };
    const free = admissible({ ...held, groupsPerStep, maxStaleness, stepsLeft });
    for (let i = 0; i < free && tally.groupsStarted < starts; i += 1) tally.admit();
  };
  next();
  return {
    get tally() {
      return tally;
    },
    trained,
    resume(): void {
      isPaused = false;
      next();
    },
    do(event: Event): void {
      const inStep = tally.inStep > 0;
      if (event.kind === 'pause') isPaused = !isPaused;
      else if (event.kind === 'carry') tally = createRunTally(input, JSON.parse(JSON.stringify(tally.state())), 1);
      else if (event.kind === 'arrive') {
        const chosen = [...tally.inFlight][event.pick % Math.max(1, tally.inFlight.size)];
        if (chosen === undefined) return;
        const [index, admitted] = chosen;
        // A group that began to sample late has newer tokens only.
        const minVersion = Math.max(0, Math.min(tally.policyVersion, admitted - event.behind));
        versions.set(index, minVersion);
        const counts = { scored: event.scored, infra: 2 - event.scored };
        tally.arrive(groupSummary(index, minVersion, counts), false);
      } else if (inStep && event.kind === 'step') {
        const { groups = [] } = tally.takeForStep() ?? {};
        const step = tally.step + 1;
        trained.push(...groups.map((index) => ({ step, version: versions.get(index) ?? 0 })));
        tally.finishStep(stepResult(step, { trained: groups.length }));
      } else if (inStep && event.kind === 'fail') {
        tally.failStep('out of memory', 'paused');
        tally.pausedBecause = null;
      } else if (inStep && event.kind === 'skip') {
        tally.failStep('out of memory', 'paused');
        tally.skipStep();
        const skipped = { skippedBecause: 'out of memory' };
        tally.finishStep(stepResult(tally.step + 1, { skipped: tally.inStep }, skipped));
      }
      next();
    },
  };
}

describe('the tally of a run whose steps wait', () => {
  it('drops no group as stale and exceeds the bound with none, in any order of events', () => {
    fc.assert(
      fc.property(shape, eventsOf(0), (given, events) => {
        const run = createRun(inputOfRun({ ...given, steps, rolloutsPerGroup: 2 }));
        for (const event of events) run.do(event);
        assert.equal(run.tally.groups.stale, 0);
        for (const { step, version } of run.trained) assert.ok(staleness(step, version) <= given.maxStaleness);
      }),
      { numRuns: 400 },
    );
  });

  it('reaches its last step as soon as groups end, whatever happened, also if engines sampled with older weights', () => {
    fc.assert(
      fc.property(shape, eventsOf(4), fc.nat(), (given, events, pick) => {
        const run = createRun(inputOfRun({ ...given, steps, rolloutsPerGroup: 2 }));
        for (const event of events) run.do(event);
        run.resume();
        const most = 2 * steps * (given.maxStaleness + 2) * given.groupsPerStep;
        for (let turn = 0; run.tally.step < steps; turn += 1) {
          assert.ok(turn < most, `stuck after step ${run.tally.step}, waits for ${run.tally.waitsFor}`);
          if (run.tally.inStep > 0) run.do({ kind: 'step' });
          else run.do({ kind: 'arrive', pick: pick + turn, scored: 2, behind: 0 });
        }
      }),
      { numRuns: 400 },
    );
  });

  it('makes all steps for which it has groups when its budget is used up', () => {
    fc.assert(
      fc.property(shape, eventsOf(4), fc.nat({ max: 20 }), (given, events, starts) => {
        const run = createRun(inputOfRun({ ...given, steps, rolloutsPerGroup: 2 }), starts);
        for (const event of events) run.do(event);
        run.resume();
        while (run.tally.inFlight.size > 0) run.do({ kind: 'arrive', pick: 0, scored: 2, behind: 0 });
        while (run.tally.inStep > 0) run.do({ kind: 'step' });
        assert.ok(run.tally.step === steps || run.tally.ready.size < given.groupsPerStep);
      }),
      { numRuns: 400 },
    );
  });

  it('lets no step leave more old groups in flight than the next steps can train in time', () => {
    const run = createRun(inputOfRun({ steps: 6, groupsPerStep: 1, maxStaleness: 2, rolloutsPerGroup: 2 }));
    const arrive = (pick: number) => run.do({ kind: 'arrive', pick, scored: 2, behind: 0 });
    arrive(0);
    run.do({ kind: 'step' });
    arrive(2);
    // Step 2 without groups 1 and 2 would leave two groups of version 0 for step 3, the last that may train one.
    assert.deepEqual([[...run.tally.inFlight.keys()], run.tally.inStep, run.tally.waitsFor], [[1, 2], 0, [1]]);
    arrive(1);
    assert.deepEqual([run.tally.inStep, [...run.tally.ready.keys()]], [1, [3]]);
  });

  it('names the group in flight that a step waits for, until it has ended', () => {
    const input = inputOfRun({ steps: 4, groupsPerStep: 1, maxStaleness: 1, rolloutsPerGroup: 2 });
    const run = createRun(input);
    const arrive = (pick: number) => run.do({ kind: 'arrive', pick, scored: 2, behind: 0 });
    arrive(1);
    run.do({ kind: 'step' });
    assert.deepEqual([[...run.tally.inFlight.keys()], run.tally.step, run.tally.waitsFor], [[0, 2], 1, []]);
    arrive(1);
    assert.deepEqual([[...run.tally.inFlight.keys()], run.tally.inStep, run.tally.waitsFor], [[0], 0, [0]]);
    arrive(0);
    assert.deepEqual([run.tally.inStep, run.tally.waitsFor, [...run.tally.ready.keys()]], [1, [], [2]]);
  });
});
