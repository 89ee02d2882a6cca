import assert from 'node:assert/strict';
import { it } from 'node:test';
import { keepArtifacts } from '../../../../infra/grading/artifacts/keep-artifacts.ts';
import type { Sandbox } from '../../../../infra/sandbox/sandbox.ts';
import type { Store } from '../../../../infra/store/store.ts';

/** A sandbox whose agent, which is root, has replaced tar by a program that prints something else. */
function sandboxWith(stdout: Buffer, changed: readonly string[]): Sandbox {
  const result = { exitCode: 0, timedOut: false, truncated: false, stdout, stderr: Buffer.alloc(0) };
  const changes = { changedPrograms: async () => changed };
  return { kind: 'docker', name: 'agents', exec: async () => result, changes } as unknown as Sandbox;
}

const store = { put: async () => ({ digest: 'kept' }) } as unknown as Store;
const options = { paths: ['/app/out'], secrets: ['session~secret'] };

it('blames the agent for artifacts that are no tar: immediately if it has replaced tar, and else at the second time', async ({
  signal,
}) => {
  for (const printed of [Buffer.alloc(1024, 'x'), Buffer.alloc(100, 'x')]) {
    const keep = (changed: readonly string[], attempt: number) =>
      keepArtifacts(sandboxWith(printed, changed), store, { ...options, attempt }, signal);
    assert.match((await keep(['/usr/bin/tar'], 1)).unread ?? '', /its agent changed \/usr\/bin\/tar/);
    await assert.rejects(keep([], 1), { type: 'SandboxUnavailable' });
    assert.match((await keep([], 3)).unread ?? '', /got something else/);
  }
});
