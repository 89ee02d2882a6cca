import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ActivityFailure, ApplicationFailure, RetryState, TimeoutFailure, type TimeoutType } from '@temporalio/common';
import type { Stage } from '../../../workflows/contracts/rollout.ts';
import { attributed, StageFailure } from '../../../workflows/rollout/failure.ts';

const timedOut = (stage: Stage, type: TimeoutType): StageFailure => {
  const cause = new TimeoutFailure('timed out', undefined, type);
  const failure = attributed(stage, new ActivityFailure('failed', stage, '1', RetryState.TIMEOUT, 'worker', cause));
  assert.ok(failure instanceof StageFailure);
  return failure;
};

it('attributes a timeout of a stage in the sandbox to a lost host, so that a fresh sandbox is used', () => {
  for (const stage of ['provisionSandbox', 'startAgent', 'awaitAgent', 'captureDiff'] as const) {
    assert.equal(timedOut(stage, 'HEARTBEAT').record.type, 'HostLost');
  }
  assert.equal(timedOut('startAgent', 'SCHEDULE_TO_START').neverStarted, true);
  assert.equal(timedOut('startAgent', 'HEARTBEAT').neverStarted, false);
});

it('attributes a timeout of another stage to a lost worker, so that the agent does not run again', () => {
  for (const stage of ['openTrace', 'sealTrace', 'evaluate', 'reward'] as const) {
    assert.equal(timedOut(stage, 'START_TO_CLOSE').record.type, 'WorkerLost');
  }
});

it('attributes a session that no worker of its host takes to a lost host', () => {
  for (const stage of ['openTrace', 'sealTrace'] as const) {
    assert.equal(timedOut(stage, 'SCHEDULE_TO_START').record.type, 'HostLost');
  }
});

it('attributes a failure of the agent to the stage that its activity reports', () => {
  const progress = { stage: 'startAgent' };
  const causes = [
    new TimeoutFailure('timed out', progress, 'HEARTBEAT'),
    ApplicationFailure.create({ type: 'SandboxUnavailable', message: 'the engine is away', details: [progress] }),
    ApplicationFailure.create({ type: 'SandboxUnavailable', message: 'the engine is away' }),
  ];
  const records = causes.map((cause) => {
    const failure = attributed('awaitAgent', new ActivityFailure('failed', 'awaitAgent', '1', 'TIMEOUT', '', cause));
    assert.ok(failure instanceof StageFailure);
    return [failure.record.type, failure.record.stage];
  });
  assert.deepEqual(records, [
    ['HostLost', 'startAgent'],
    ['SandboxUnavailable', 'startAgent'],
    ['SandboxUnavailable', 'awaitAgent'],
  ]);
});
