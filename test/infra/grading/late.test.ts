import assert from 'node:assert/strict';
import { it } from 'node:test';
import { retryLate } from '../../../infra/grading/late.ts';

it("blames the host twice for work that cannot be placed in time, and then the agent's work", () => {
  for (const attempt of [1, 2]) {
    assert.throws(() => retryLate({ timedOut: true }, attempt), { type: 'EvaluationTimedOut' });
  }
  retryLate({ timedOut: true }, 3);
  retryLate({ timedOut: false }, 1);
});
