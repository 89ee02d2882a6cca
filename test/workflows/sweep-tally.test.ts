import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type SweepPlan, type SweepRow, sweepInput } from '../../workflows/contracts/sweep.ts';
import { SweepBooks } from '../../workflows/sweep/tally.ts';

const plan: SweepPlan = {
  ...{ tasks: 3, list: { digest: 'list', size: 1, mediaType: 'application/json' } },
  ...{ policyVersion: 3, run: null },
};
const row = (task: number, fields: Partial<SweepRow>): SweepRow => ({
  ...{ task, attempt: 0, retry: 0, taskId: `task-${task}`, workflowId: `sweep/rollout-${task}-0-0` },
  ...{ outcome: 'scored', reward: 1, stop: 'submitted', failure: null, versions: [3, 3] },
  ...{ turns: 2, sampledTokens: 10, promptTokens: 100, seconds: 4, sandboxSeconds: 3 },
  ...fields,
});

function begun(): SweepBooks {
  const books = new SweepBooks(sweepInput.parse({ tasks: 'set', attempts: 1, infraRetries: 2 }), null, 0);
  books.begin(plan);
  books.take(3);
  books.settle(0, row(0, { outcome: 'infra', reward: null, versions: null }));
  assert.deepEqual([books.sums.retried, books.sums.outcomes.infra], [1, 0], 'it is to be made again');
  return books;
}

it('what waits to be made again has ended as infra when the engine moves on', () => {
  const books = begun();
  books.settle(1, row(1, { versions: [4, 4] }));
  books.settle(2, row(2, {}));
  const { retried, outcomes, leftOut, counted } = books.sums;
  assert.equal(books.done, true);
  assert.deepEqual([retried, outcomes.infra, outcomes.scored, counted], [0, 1, 2, 1]);
  assert.deepEqual([leftOut.infra, leftOut['other-version']], [1, 1]);
});

it('what waits to be made again has ended as infra when the sweep is cancelled', () => {
  const books = begun();
  books.cancelling = true;
  for (const task of [1, 2]) books.settle(task, row(task, { outcome: 'cancelled', reward: null }));
  const { retried, outcomes, leftOut } = books.sums;
  assert.deepEqual([retried, outcomes.infra, outcomes.cancelled, leftOut.infra], [0, 1, 2, 1]);
});
