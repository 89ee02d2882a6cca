import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ActivityFailure, ApplicationFailure } from '@temporalio/common';
import type { FailureType } from '../../workflows/contracts/failures.ts';
import { whyFailed } from '../../workflows/run/why-failed.ts';

const failed = (activity: string, type: FailureType): Error =>
  new Error('child workflow failed', {
    cause: new ActivityFailure(
      'activity failed',
      activity,
      '1',
      'NON_RETRYABLE_FAILURE',
      undefined,
      ApplicationFailure.create({ message: 'the reason', type }),
    ),
  });

it('a step that failed offers to be skipped only if it has no update and the journal is that of the run', () => {
  const offered = (error: Error): boolean => {
    const text = whyFailed(7, { isSkipped: false }, error);
    assert.match(text, /^step 7 failed: the reason; fix the cause, then resume/);
    return text.includes('--skip-step');
  };
  assert.ok(offered(failed('update', 'TrainerRefused')));
  assert.ok(offered(failed('gatherBatch', 'BlobMissing')));
  assert.ok(offered(new Error('the reason')));
  assert.ok(!offered(failed('update', 'JournalMismatch')));
  assert.ok(!offered(failed('syncWeights', 'EngineUnavailable')));
  assert.ok(!offered(failed('recordStep', 'StoreUnavailable')));
});

it('a step whose update is made is not offered to be skipped again', () => {
  const text = (activity: string, type: FailureType) => whyFailed(7, { isSkipped: true }, failed(activity, type));
  assert.equal(text('skipUpdate', 'TrainerRefused'), 'step 7 could not be skipped: the reason');
  assert.match(text('skipUpdate', 'StoreUnavailable'), /the reason; skip it again, or resume to make it$/);
});
