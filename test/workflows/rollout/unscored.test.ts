import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { StopReason } from '../../../workflows/contracts/outcome.ts';
import type { TraceSummary } from '../../../workflows/contracts/trace.ts';
import { unscored } from '../../../workflows/rollout/unscored.ts';

const blob = { digest: '0'.repeat(64), size: 1, mediaType: 'text/plain' };
const clean: TraceSummary = {
  trace: blob,
  turns: 1,
  segments: 1,
  sampledTokens: 2,
  promptTokens: 4,
  minVersion: 1,
  maxVersion: 1,
  contextOverflow: false,
  turnLimit: false,
  engineFailures: 0,
};
const failureOf = (stop: StopReason, changes: Partial<TraceSummary>): string | null => {
  try {
    const end = { stop, exitCode: 1, log: blob };
    return unscored({ unscored: [] }, { end, trace: { ...clean, ...changes } })?.type ?? null;
  } catch (error) {
    assert.ok(error instanceof Error && 'record' in error);
    return (error.record as { type: string }).type;
  }
};

it('an agent that crashed or ran out of time over a turn which others failed is not scored; one that submitted is', () => {
  for (const stop of ['deadline', 'crashed'] as const) {
    assert.equal(failureOf(stop, {}), null);
    assert.equal(failureOf(stop, { engineFailures: 1 }), 'EngineUnavailable');
    assert.equal(failureOf(stop, { gatewayFailures: 1 }), 'GatewayUnavailable');
  }
  assert.equal(failureOf('submitted', { engineFailures: 1, gatewayFailures: 1 }), null);
});

it('an agent that ended well is not scored when such a failure was the end of its session', () => {
  assert.equal(failureOf('submitted', { engineFailures: 1, cutOff: true }), 'EngineUnavailable');
  assert.equal(failureOf('submitted', { gatewayFailures: 1, cutOff: true }), 'GatewayUnavailable');
});
