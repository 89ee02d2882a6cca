import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { StopReason } from '../../../workflows/contracts/outcome.ts';
import type { TraceSummary } from '../../../workflows/contracts/trace.ts';
import { stopReason } from '../../../workflows/rollout/stop-reason.ts';
import { summaryOf } from '../../helpers/temporal/script.ts';

const clean = summaryOf({ digest: '0'.repeat(64), size: 1, mediaType: 'text/plain' }, 1);
const stopOf = (stop: StopReason, changes: Partial<TraceSummary>): StopReason =>
  stopReason([], { ...clean, ...changes }, stop);

it('names the limit at which the gateway refused an agent that then ended with an error', () => {
  assert.equal(stopOf('crashed', { contextOverflow: true, turnLimit: true }), 'context-overflow');
  assert.equal(stopOf('crashed', { turnLimit: true }), 'turn-limit');
  assert.equal(stopOf('crashed', { tokenBudget: true }), 'token-budget');
  assert.equal(stopOf('crashed', {}), 'crashed');
  assert.equal(stopReason(undefined, null, 'crashed'), 'crashed');
});

it('keeps any other end beside a limit', () => {
  for (const stop of ['submitted', 'exited', 'deadline', 'memory-limit'] as const) {
    assert.equal(stopOf(stop, { contextOverflow: true, turnLimit: true, tokenBudget: true }), stop);
  }
});

it('takes a submission by the host tool alone where the agent has it', () => {
  assert.equal(stopOf('crashed', { submitted: true, contextOverflow: true }), 'submitted');
  assert.equal(stopReason(['submit'], clean, 'submitted'), 'exited');
  assert.equal(stopReason(['answer'], clean, 'submitted'), 'submitted');
});
