import assert from 'node:assert/strict';
import { it } from 'node:test';
import { keepArtifacts } from '../../../../infra/grading/artifacts/keep-artifacts.ts';
import { blamingBrokenPrograms } from '../../../../infra/sandbox/broken-programs.ts';
import type { Sandbox } from '../../../../infra/sandbox/sandbox.ts';
import type { Store } from '../../../../infra/store/store.ts';

/** A sandbox whose agent, which is root, has replaced tar by a program that prints something else. */
function sandboxWith(stdout: Buffer, changed: readonly string[]): Sandbox {
  const result = { exitCode: 0, timedOut: false, truncated: false, stdout, stderr: Buffer.alloc(0) };
  const changes = { changedPrograms: async () => changed };
  return { kind: 'docker', name: 'agents', exec: async () => result, changes } as unknown as Sandbox;
}

const store = { put: async () => ({ digest: 'kept' }) } as unknown as Store;
const options = { paths: ['/app/out'], secrets: ['session~secret'], attempt: 1 };

it('blames the agent that replaced tar for artifacts that are no tar', async ({ signal }) => {
  for (const printed of [Buffer.alloc(1024, 'x'), Buffer.alloc(100, 'x')]) {
    const keep = (changed: readonly string[]) => {
      const sandbox = sandboxWith(printed, changed);
      return blamingBrokenPrograms(sandbox, () => keepArtifacts(sandbox, store, options, signal));
    };
    await assert.rejects(keep(['/usr/bin/tar']), { type: 'SandboxLost', loss: 'ended-inside' });
    await assert.rejects(keep([]), { type: 'Internal' });
  }
});
