import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { admissible, staleness } from '../../workflows/algorithms/staleness.ts';
import type { GroupSummary } from '../../workflows/contracts/group.ts';
import { fates, outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import { type RunInput, runInput, type StepResult } from '../../workflows/contracts/run.ts';
import { createRunTally } from '../../workflows/run/tally.ts';

const sum = (record: Readonly<Record<string, number>>): number => Object.values(record).reduce((a, b) => a + b, 0);

/** The events of a run, in any order. `pick` chooses among the groups in flight. */
const event = fc.oneof(
  fc.record({ kind: fc.constant('arrive' as const), pick: fc.nat(), scored: fc.nat({ max: 2 }) }),
  fc.record({ kind: fc.constantFrom('step' as const, 'fail' as const, 'carry' as const) }),
);
const shape = fc.record({
  groupsPerStep: fc.integer({ min: 1, max: 4 }),
  maxStaleness: fc.nat({ max: 3 }),
  onStale: fc.constantFrom('cancel' as const, 'withhold' as const, 'keep' as const),
});

/** A run in miniature, driven by events. */
function createRun(input: RunInput) {
  let tally = createRunTally(input, null);
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
    const counts = { ...zeroCount(outcomes), scored, infra: input.rolloutsPerGroup - scored };
    const minVersion = tally.inFlight.get(index) ?? 0;
    const summary: GroupSummary = { runKey: '', index, minVersion, outcomes: counts, meanReward: null };
    tally.arrive(summary, false);
    tally.arrive(summary, false);
  };
  const finish = (): void => {
    if (inStep.length === 0) return;
    const step = tally.step + 1;
    const groups = { ...zeroCount(fates), trained: inStep.length };
    const rest = { batch: null, rollouts: 0, tokens: 0, meanReward: null, staleness: 0, metrics: {} };
    trained.push(...inStep.map((index) => ({ step, index, admitted: admittedAt.get(index) ?? 0 })));
    tally.finishStep({ step, groups, ...rest } satisfies StepResult);
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
      inStep = [];
      next();
      if (before.length > 0) assert.deepEqual(inStep, before);
    },
    carry(): void {
      tally = createRunTally(input, JSON.parse(JSON.stringify(tally.state())));
    },
  };
}

describe('the tally of a run', () => {
  it('accounts for every group and every rollout exactly once, in any order of events', () => {
    fc.assert(
      fc.property(shape, fc.array(event, { maxLength: 120 }), (given, events) => {
        const run = createRun(runInput.parse({ ...given, steps: 6, rolloutsPerGroup: 2 }));
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
        const run = createRun(runInput.parse({ ...given, steps: 6, rolloutsPerGroup: 2 }));
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
        const run = createRun(runInput.parse({ ...given, steps: 6, rolloutsPerGroup: 2 }));
        for (const one of events) {
          if (one === 'arrive') run.arrive(0, 2);
          else run[one as 'step' | 'carry']();
        }
        return run.tally.groups.stale === 0 && run.tally.groups.withheld === 0;
      }),
    );
  });
});
