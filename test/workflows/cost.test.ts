import assert from 'node:assert/strict';
import { it } from 'node:test';
import { addLedgers, addRollout, modelUseOf, totalOf, unknownLedger } from '../../workflows/algorithms/cost.ts';
import type { Ledger, RolloutCost } from '../../workflows/contracts/cost.ts';
import { outcomes, zeroCount } from '../../workflows/contracts/outcome.ts';

const cost: RolloutCost = {
  promptTokens: 100,
  sampledTokens: 10,
  engineSeconds: 1.1,
  waitedSeconds: 0,
  sandboxSeconds: { docker: 20.1 },
  evaluationSeconds: 3,
};

it('sums costs by outcome and by provider', () => {
  let ledger: Ledger = addRollout({}, 'scored', cost);
  ledger = addRollout(ledger, 'scored', { ...cost, sandboxSeconds: { local: 5, docker: 0.2 } });
  ledger = addRollout(ledger, 'infra', { ...cost, incomplete: true });
  const { scored, infra } = addLedgers(ledger, { infra: ledger.infra ?? assert.fail() });
  assert.deepEqual(scored?.sandboxSeconds, { docker: 20.3, local: 5 });
  assert.deepEqual([scored?.rollouts, scored?.promptTokens, scored?.engineSeconds], [2, 200, 2.2]);
  assert.deepEqual([infra?.rollouts, infra?.unknown, infra?.sampledTokens], [2, 2, 20]);
  const { rollouts, unknown, sampledTokens, evaluationSeconds } = totalOf(ledger);
  assert.deepEqual([rollouts, unknown, sampledTokens, evaluationSeconds], [3, 1, 30, 9]);
});

it('counts a rollout without a cost as unknown, not as free', () => {
  const ledger = addRollout({}, 'cancelled', undefined);
  assert.deepEqual([ledger.cancelled?.rollouts, ledger.cancelled?.unknown], [1, 1]);
  assert.deepEqual(unknownLedger({ ...zeroCount(outcomes), cancelled: 1 }), ledger);
});

it('takes the time of a turn from its start to its end', () => {
  const turn = { sampledIds: [1, 2], promptLength: 7, startedAt: 1000, endedAt: 2500 };
  assert.deepEqual(modelUseOf([turn, turn], 1_500), {
    promptTokens: 14,
    sampledTokens: 4,
    engineSeconds: 3,
    waitedSeconds: 1.5,
  });
});
