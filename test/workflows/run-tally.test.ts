import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { admissible, staleness } from '../../workflows/algorithms/staleness.ts';
import type { GroupSummary } from '../../workflows/contracts/group.ts';
import { fates, outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';
import { type RunInput, runInput, type StepResult } from '../../workflows/contracts/run.ts';
import { Ledger } from '../../workflows/run/tally.ts';

const sum = (record: Readonly<Record<string, number>>): number => Object.values(record).reduce((a, b) => a + b, 0);

/** What can happen to a run, in any order. `pick` chooses among the groups in flight. */
const event = fc.oneof(
  fc.record({ kind: fc.constant('arrive' as const), pick: fc.nat(), scored: fc.nat({ max: 2 }) }),
  fc.record({ kind: fc.constantFrom('step' as const, 'fail' as const, 'carry' as const) }),
);
const shape = fc.record({
  groupsPerStep: fc.integer({ min: 1, max: 4 }),
  maxStaleness: fc.nat({ max: 3 }),
  onStale: fc.constantFrom('cancel' as const, 'withhold' as const, 'keep' as const),
});

/** A run in miniature: admits, and does what the events say. */
function createRun(input: RunInput) {
  let ledger = new Ledger(input, null);
  let inStep: readonly number[] = [];
  const trained: { readonly step: number; readonly index: number; readonly admitted: number }[] = [];
  const admittedAt = new Map<number, number>();
  const admit = (): void => {
    const room = admissible({
      ...{ inFlight: ledger.inFlight.size, ready: ledger.ready.size, inStep: ledger.inStep },
      ...{ groupsPerStep: input.groupsPerStep, maxStaleness: input.maxStaleness },
      stepsLeft: input.steps - ledger.step - (ledger.inStep > 0 ? 1 : 0),
    });
    for (let i = 0; i < room; i += 1) admittedAt.set(ledger.admit(), ledger.policyVersion);
  };
  const arrive = (index: number, scored: number): void => {
    const counts = { ...zeroCount(outcomes), scored, infra: input.rolloutsPerGroup - scored };
    const minVersion = ledger.inFlight.get(index) ?? 0;
    const summary: GroupSummary = { runKey: '', index, minVersion, outcomes: counts, meanReward: null };
    ledger.arrive(summary, false);
    ledger.arrive(summary, false);
  };
  const finish = (): void => {
    if (inStep.length === 0) return;
    const step = ledger.step + 1;
    const groups = { ...zeroCount(fates), trained: inStep.length };
    const rest = { batch: null, rollouts: 0, tokens: 0, meanReward: null, staleness: 0, metrics: {} };
    trained.push(...inStep.map((index) => ({ step, index, admitted: admittedAt.get(index) ?? 0 })));
    ledger.finishStep({ step, groups, ...rest } satisfies StepResult);
    inStep = [];
  };
  const next = (): void => {
    if (inStep.length === 0 && ledger.step < input.steps) inStep = ledger.takeForStep()?.groups ?? [];
    admit();
  };
  admit();
  return {
    get ledger() {
      return ledger;
    },
    trained,
    inStep: () => ledger.inStep,
    arrive(pick: number, scored: number): void {
      const flying = [...ledger.inFlight.keys()];
      if (flying.length > 0) arrive(flying[pick % flying.length] ?? 0, scored);
      next();
    },
    step(): void {
      finish();
      next();
    },
    fail(): void {
      // A step that fails is done again with what it had, and with nothing else.
      const before = inStep;
      inStep = [];
      next();
      if (before.length > 0) assert.deepEqual(inStep, before);
    },
    carry(): void {
      ledger = new Ledger(input, JSON.parse(JSON.stringify(ledger.state())));
    },
  };
}

describe('the books of a run', () => {
  it('give every group one place and every rollout one outcome, whatever happens in whatever order', () => {
    fc.assert(
      fc.property(shape, fc.array(event, { maxLength: 120 }), (given, events) => {
        const run = createRun(runInput.parse({ ...given, steps: 6, rolloutsPerGroup: 2 }));
        return events.every((one) => {
          if (one.kind === 'arrive') run.arrive(one.pick, one.scored);
          else run[one.kind]();
          const { ledger } = run;
          const places = ledger.inFlight.size + ledger.ready.size + run.inStep() + sum(ledger.groups);
          const rollouts = sum(ledger.rollouts) + 2 * ledger.inFlight.size;
          return places === ledger.groupsStarted && rollouts === 2 * ledger.groupsStarted;
        });
      }),
    );
  });

  it('never train on a group that trails too far, unless the run wants to keep those', () => {
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

  it('waste no group where groups end in their turn', () => {
    fc.assert(
      fc.property(shape, fc.array(fc.constantFrom('arrive', 'step', 'carry'), { maxLength: 200 }), (given, events) => {
        const run = createRun(runInput.parse({ ...given, steps: 6, rolloutsPerGroup: 2 }));
        for (const one of events) {
          if (one === 'arrive') run.arrive(0, 2);
          else run[one as 'step' | 'carry']();
        }
        return run.ledger.groups.stale === 0 && run.ledger.groups.withheld === 0;
      }),
    );
  });
});
