import assert from 'node:assert/strict';
import { it } from 'node:test';
import { blamingEarlierStep } from '../../activities/host/begin-step.ts';
import { FileRefused, SandboxFailure } from '../../infra/sandbox/failure.ts';

const typeOf = (step: number | undefined, error: Error): Promise<unknown> =>
  blamingEarlierStep(step, () => Promise.reject(error)).then(
    () => 'none',
    (thrown: unknown) => (thrown === error ? 'as it is' : (thrown as { readonly type: string }).type),
  );

it("takes a sandbox that refuses a step's files for the doing of the agent before", async () => {
  const refused = new FileRefused('outside', '/app', 'could not write files at /app as agent: Permission denied');
  assert.equal(await typeOf(2, refused), 'SetupFailed');
  assert.equal(await typeOf(undefined, refused), 'as it is');
  assert.equal(await typeOf(2, new SandboxFailure('SandboxLost', 'gone', { loss: 'ended-inside' })), 'SetupFailed');
  assert.equal(await typeOf(2, new SandboxFailure('SandboxLost', 'gone', { loss: 'removed' })), 'as it is');
});
