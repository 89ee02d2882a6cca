import assert from 'node:assert/strict';
import { it } from 'node:test';
import { parseBudget } from '../../workers/cli/text/budget.ts';
import { budgetReason, changeBudget, startsAllowed, useOf } from '../../workflows/algorithms/budget.ts';
import { runInput } from '../../workflows/contracts/run.ts';

const used = { rollouts: 20, tokens: 5_000, sandboxHours: 1.5, wallHours: 0.25 };

it('allows no start that would exceed the rollouts, and none once another limit is reached', () => {
  assert.equal(startsAllowed({}, used, 8), Number.POSITIVE_INFINITY);
  assert.equal(startsAllowed({ rollouts: 36 }, used, 8), 2);
  assert.equal(startsAllowed({ rollouts: 27 }, used, 8), 0);
  assert.equal(startsAllowed({ rollouts: 10 }, used, 8), 0);
  assert.equal(startsAllowed({ rollouts: 100, tokens: 5_000 }, used, 8), 0);
  assert.equal(startsAllowed({ sandboxHours: 1.6, wallHours: 0.3 }, used, 8), Number.POSITIVE_INFINITY);
  assert.equal(startsAllowed({ wallHours: 0.25 }, used, 8), 0);
});

it('says which limits are reached, and how to continue', () => {
  assert.equal(
    budgetReason('my-run', { rollouts: 24, tokens: 9_000 }, used),
    'the budget is used up: 20 of 24 rollouts; raise it with `temper budget my-run rollouts=N`',
  );
  assert.equal(
    budgetReason('my-run', { tokens: 4_000, sandboxHours: 1.5 }, used),
    'the budget is used up: 5000 of 4000 tokens, 1.500 of 1.500 sandbox-hours; raise it with `temper budget my-run tokens=N,sandbox-hours=N`',
  );
});

it('counts the tokens and sandboxes of every outcome', () => {
  const one = {
    rollouts: 1,
    unknown: 0,
    promptTokens: 90,
    sampledTokens: 10,
    engineSeconds: 1,
    waitedSeconds: 0,
    evaluationSeconds: 900,
  };
  const ledger = {
    scored: { ...one, sandboxSeconds: { docker: 1800 } },
    infra: { ...one, sandboxSeconds: { local: 900, unknown: 900 } },
  };
  assert.deepEqual(useOf(ledger, 4, 7200), { rollouts: 4, tokens: 200, sandboxHours: 1, wallHours: 2 });
});

it('changes the limits that are given, and removes those that are null', () => {
  const budget = { rollouts: 10, tokens: 100 };
  assert.deepEqual(changeBudget(budget, { tokens: null, wallHours: 2 }), { rollouts: 10, wallHours: 2 });
  assert.deepEqual(changeBudget(budget, {}), budget);
});

it('reads limits as people write them, and refuses what it does not know', () => {
  assert.deepEqual(parseBudget('rollouts=1k,tokens=2.5M,sandbox-hours=0.5,wall-hours=none'), {
    rollouts: 1_000,
    tokens: 2_500_000,
    sandboxHours: 0.5,
    wallHours: null,
  });
  const large = 'rollouts=1.001k,tokens=8.2M,sandbox-hours=0.0005k';
  assert.deepEqual(parseBudget(large), { rollouts: 1_001, tokens: 8_200_000, sandboxHours: 0.5 });
  assert.throws(() => parseBudget('sandbox-hours=0'), /sandbox-hours: expected a number from 0.001/);
  for (const wrong of [
    'rollouts',
    'rollouts=0',
    'tokens=-1',
    'gpu-hours=3',
    'rollouts=1,rollouts=2',
    'rollouts=1.5',
    'tokens=1.0005k',
    '',
  ])
    assert.throws(() => parseBudget(wrong), /expected|Expected/, wrong);
  assert.throws(() => runInput.parse({ tasks: 'generated:train/1', budget: { tokens: null } }));
  assert.throws(() => runInput.parse({ tasks: 'generated:train/1', budget: { gpuHours: 1 } }));
});
