import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { StopReason } from '../../../workflows/contracts/outcome.ts';
import type { RolloutInput } from '../../../workflows/contracts/rollout.ts';
import type { TraceSummary } from '../../../workflows/contracts/trace.ts';
import { unscored } from '../../../workflows/rollout/unscored.ts';
import { summaryOf } from '../../helpers/temporal/script.ts';

const blob = { digest: '0'.repeat(64), size: 1, mediaType: 'text/plain' };
const clean = summaryOf(blob, 1);
const failureOf = (stop: StopReason, changes: Partial<TraceSummary>): string | null => {
  try {
    const end = { stop, exitCode: 1, log: blob };
    return unscored({ unscored: [], waitingMs: 0 }, { end, trace: { ...clean, ...changes } })?.type ?? null;
  } catch (error) {
    assert.ok(error instanceof Error && 'record' in error);
    return (error.record as { type: string }).type;
  }
};

it('does not score an agent that crashed or timed out after a failure of engine or gateway, but scores one that submitted', () => {
  for (const stop of ['deadline', 'crashed'] as const) {
    assert.equal(failureOf(stop, {}), null);
    assert.equal(failureOf(stop, { engineFailures: 1 }), 'EngineUnavailable');
    assert.equal(failureOf(stop, { gatewayFailures: 1 }), 'GatewayUnavailable');
  }
  assert.equal(failureOf('submitted', { engineFailures: 1, gatewayFailures: 1 }), null);
});

it('does not score an agent that submitted if such a failure ended its session', () => {
  assert.equal(failureOf('submitted', { engineFailures: 1, cutOff: true }), 'EngineUnavailable');
  assert.equal(failureOf('submitted', { gatewayFailures: 1, cutOff: true }), 'GatewayUnavailable');
});

it('scores no agent whose environment was lost, whatever it did afterwards', () => {
  for (const stop of ['submitted', 'exited', 'deadline'] as const) {
    assert.equal(failureOf(stop, { environmentFailures: 1 }), 'EnvironmentUnavailable');
  }
});

it('excludes the ends that the input names, and no other', () => {
  const failureWith = (excluded: RolloutInput['unscored'], stop: StopReason, contextOverflow = false) =>
    unscored(
      { unscored: excluded, waitingMs: 0 },
      { end: { stop, exitCode: 1, log: blob }, trace: { ...clean, contextOverflow } },
    );
  const { type, stage } = failureWith(['deadline'], 'deadline') ?? {};
  assert.deepEqual([type, stage], ['Excluded', 'awaitAgent']);
  assert.equal(failureWith(['context-overflow'], 'deadline'), null);
  assert.equal(failureWith(['deadline', 'context-overflow'], 'crashed'), null);
  // A conversation that no longer fits ends an agent in any way; it is scored if the agent had submitted.
  assert.equal(failureWith(['context-overflow'], 'crashed', true)?.type, 'Excluded');
  assert.equal(failureWith(['deadline'], 'deadline', true), null);
  assert.equal(failureWith(['context-overflow'], 'submitted', true), null);
});

it('does not score a task whose agent lost its model in an earlier step', () => {
  const failed = { ...clean, engineFailures: 1 };
  const after = (stop: StopReason | null) => () =>
    unscored(
      { unscored: [], waitingMs: 0 },
      {
        end: { stop: 'submitted', exitCode: 0, log: blob },
        trace: failed,
        steps: [{ name: 'one', reward: 0, stop, agentLog: blob }],
      },
    );
  assert.throws(after('crashed'), /the engine stayed away/);
  for (const stop of ['submitted', null] as const) assert.equal(after(stop)(), null);
});

it('does not score an agent whose time was over because it had waited for an engine too long', () => {
  const after = (stop: StopReason, waitedMs: number, waitingMs: number) => () =>
    unscored({ unscored: [], waitingMs }, { end: { stop, exitCode: null, log: blob, waitedMs }, trace: clean });
  assert.throws(
    after('deadline', 75_400, 60_000),
    /waited 75 s for an engine, its clock stands still for 60 s at most/,
  );
  assert.equal(after('deadline', 60_000, 60_000)(), null);
  assert.equal(after('submitted', 75_400, 60_000)(), null);
  const inShort = { stop: 'deadline', exitCode: null, log: blob, waitedMs: 75_400, waitingMs: 30_000 } as const;
  assert.throws(
    () => unscored({ unscored: [], waitingMs: 3_600_000 }, { end: inShort, trace: clean }),
    /stands still for 30 s at most \(what the longest lifetime of its sandbox leaves\)/,
  );
  // Without a ceiling the clock never stands still, and what the agent left counts.
  assert.equal(after('deadline', 75_400, 0)(), null);
});
