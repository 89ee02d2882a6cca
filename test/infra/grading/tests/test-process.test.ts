import assert from 'node:assert/strict';
import { it } from 'node:test';
import { requireEnd } from '../../../../infra/grading/tests/test-process.ts';

it('retries an evaluation if the end of its tests was not observed', () => {
  const lost = { state: 'unknown', evidence: 'its supervisor (pid 7) is gone without a result' } as const;
  assert.throws(() => requireEnd(lost), { type: 'SandboxUnavailable', message: /pid 7/ });
  assert.throws(() => requireEnd({ state: 'absent' }), { type: 'SandboxUnavailable', message: /never started/ });
  assert.deepEqual(requireEnd({ state: 'exited', exitCode: 1 }), { state: 'exited', exitCode: 1 });
  assert.deepEqual(requireEnd({ state: 'running' }), { state: 'running' });
});

it('knows tests that an earlier activity attempt ended because their time was over', () => {
  const ended = { state: 'exited', exitCode: 137, signal: 'SIGKILL', limit: 'time' } as const;
  assert.deepEqual(requireEnd(ended), { state: 'running' });
});
