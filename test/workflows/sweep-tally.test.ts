import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { type SweepPlan, type SweepRow, sweepInput } from '../../workflows/contracts/sweep.ts';
import { createSweepTally, type SweepTally } from '../../workflows/sweep/tally.ts';

const plan: SweepPlan = {
  tasks: 3,
  list: { digest: 'list', size: 1, mediaType: 'application/json' },
  policyVersion: 3,
  run: null,
};
const row = (task: number, fields: Partial<SweepRow>): SweepRow => ({
  task,
  attempt: 0,
  retry: 0,
  taskId: `task-${task}`,
  workflowId: `sweep/rollout-${task}-0-0`,
  outcome: 'scored',
  reward: 1,
  stop: 'submitted',
  failure: null,
  versions: [3, 3],
  turns: 2,
  sampledTokens: 10,
  promptTokens: 100,
  seconds: 4,
  sandboxSeconds: 3,
  ...fields,
});

function createBegunTally(): SweepTally {
  const tally = createSweepTally({
    input: sweepInput.parse({ tasks: 'set', attempts: 1, infraRetries: 2 }),
    state: null,
    nowMs: 0,
  });
  tally.begin(plan);
  tally.take(3);
  tally.settle(0, row(0, { outcome: 'infra', reward: null, versions: null }));
  assert.deepEqual([tally.sums.retried, tally.sums.outcomes.infra], [1, 0], 'it waits for its retry');
  return tally;
}

it('counts attempts that wait for a retry as infra when the engine serves another version', () => {
  const tally = createBegunTally();
  tally.settle(1, row(1, { versions: [4, 4] }));
  tally.settle(2, row(2, {}));
  const { retried, outcomes, leftOut, counted } = tally.sums;
  assert.equal(tally.done, true);
  assert.deepEqual([retried, outcomes.infra, outcomes.scored, counted], [0, 1, 2, 1]);
  assert.deepEqual([leftOut.infra, leftOut['other-version']], [1, 1]);
});

it('counts attempts that wait for a retry as infra when the sweep is cancelled', () => {
  const tally = createBegunTally();
  tally.cancelling = true;
  for (const task of [1, 2]) tally.settle(task, row(task, { outcome: 'cancelled', reward: null }));
  const { retried, outcomes, leftOut } = tally.sums;
  assert.deepEqual([retried, outcomes.infra, outcomes.cancelled, leftOut.infra], [0, 1, 2, 1]);
});

it('counts a reward as a pass if only rounding errors keep it below the least one', () => {
  const tally = createBegunTally();
  tally.settle(1, row(1, { reward: 0.9999999999999999 }));
  tally.settle(2, row(2, { reward: 0.999_99 }));
  assert.equal(tally.sums.passed, 1);
});

const sorted = (attempts: ReadonlyMap<number, number>) => [...attempts].sort(([one], [other]) => one - other);

it('carries the attempts of the largest sweep on within one value of history, each with its retry', () => {
  const input = sweepInput.parse({ tasks: 'set', attempts: 1000, concurrency: 1500, infraRetries: 2 });
  const ends = fc.array(fc.tuple(fc.nat(), fc.constantFrom('scored', 'infra', 'cancelled')), {
    maxLength: 3000,
    size: 'max',
  });
  fc.assert(
    fc.property(ends, (all) => {
      const tally = createSweepTally({ input, state: null, nowMs: 0 });
      tally.begin(plan);
      tally.take(1500);
      for (const [which, outcome] of all) {
        const flying = [...tally.inFlight];
        const [number, retry] = flying[which % flying.length] ?? assert.fail();
        tally.settle(number, row(number % 3, { attempt: Math.floor(number / 3), retry, outcome }));
        tally.take(1);
      }
      const { plan: carried, ...state } = tally.state();
      assert.ok(JSON.stringify(state).length < 8_192, `${JSON.stringify(state).length}`);
      const next = createSweepTally({ input, state: { plan: carried, ...state }, nowMs: 0 });
      assert.deepEqual(sorted(next.inFlight), sorted(tally.inFlight));
      assert.deepEqual([...next.adopted], [...next.inFlight.keys()]);
      for (const one of [next, tally]) for (const [number] of one.take(1500)) assert.ok(one.inFlight.has(number));
      assert.deepEqual(sorted(next.inFlight), sorted(tally.inFlight));
    }),
    { numRuns: 20 },
  );
});
