import assert from 'node:assert/strict';
import { it } from 'node:test';
import { blamingEarlierStep } from '../../activities/host/begin-step.ts';
import { FileRefused, SandboxFailure } from '../../infra/sandbox/failure.ts';
import { usingWhatAgentLeft } from '../../infra/sandbox/what-agent-left.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

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

it('takes any other failure for the doing of the agent before at the second time, but not a failed set-up or an answer of a daemon', async () => {
  const sandbox = { name: 'web-3', diskUsage: async () => ({ usedMb: 0, limitMb: 1 }) };
  const never = new AbortController().signal;
  const typesOf = (error: Error) =>
    Promise.all(
      [false, true].map((failedBefore) =>
        usingWhatAgentLeft({ sandbox, failedBefore }, () => Promise.reject(error), never).catch((thrown: unknown) =>
          thrown === error ? 'as it is' : (thrown as { readonly type: string }).type,
        ),
      ),
    );
  const odd = new SandboxFailure('Internal', 'could not read the status of a process');
  assert.deepEqual(await typesOf(odd), ['SandboxUnavailable', 'SandboxLost']);
  assert.deepEqual(await typesOf(new TemperFailure('SetupFailed', 'setup.sh failed')), ['as it is', 'as it is']);
  const answer = Object.assign(new Error('server error'), { statusCode: 500 });
  assert.deepEqual(await typesOf(answer), ['as it is', 'as it is']);
});
