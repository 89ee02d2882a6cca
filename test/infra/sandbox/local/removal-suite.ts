import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Confinement } from '../../../../infra/sandbox/local/confinement.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import type { SandboxSpec } from '../../../../infra/sandbox/sandbox.ts';

const stack = 'removal';
/** A set-up takes about 40 ms, and the removals cover all of it. */
const removals = 80;
const laterByMs = 0.6;

const spec = (name: string): SandboxSpec => ({
  name,
  image: 'none',
  workdir: '/workspace',
  mounts: [],
  cpus: 1,
  memoryMb: 256,
  diskMb: 64,
  pids: 64,
  labels: { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent', expiresAtMs: Date.now() + 600_000 },
});

/** Removes sandboxes at many moments of a set-up by this confinement. */
export function removalSuite(title: string, create: (root: string) => Confinement): void {
  describe(`a local sandbox that is removed while a process starts in it, with ${title}`, () => {
    it('leaves nothing behind', async (t) => {
      const root = mkdtempSync(join(tmpdir(), 'local-removal-'));
      t.after(() => rmSync(root, { recursive: true, force: true }));
      const provider = createLocalProvider({ root, stack, confinement: create(root) });
      for (let moment = 0; moment < removals; moment++) {
        const sandbox = await provider.ensure(spec(`removed-${moment}`), t.signal);
        await sandbox.start({ key: 'long', argv: ['sleep', '600'], env: {}, account: 'agent' }, t.signal);
        await delay(moment * laterByMs);
        assert.equal(await provider.remove(sandbox.name), true);
      }
      assert.deepEqual(readdirSync(join(root, stack)), []);
    });
  });

  describe(`a command whose local sandbox is removed while it runs, with ${title}`, () => {
    it('reports a lost sandbox, at whatever moment it is removed', async (t) => {
      const root = mkdtempSync(join(tmpdir(), 'local-removal-'));
      t.after(() => rmSync(root, { recursive: true, force: true }));
      const provider = createLocalProvider({ root, stack, confinement: create(root) });
      const command = {
        argv: ['sleep', '600'],
        env: {},
        account: 'agent',
        timeoutMs: 60_000,
        maxOutputBytes: 0,
      } as const;
      for (let moment = 0; moment < removals; moment += 4) {
        const sandbox = await provider.ensure(spec(`removed-${moment}`), t.signal);
        const result = sandbox.exec(command, t.signal);
        const lost = assert.rejects(result, { type: 'SandboxLost', loss: 'removed' }, `after ${moment * laterByMs} ms`);
        await delay(moment * laterByMs);
        assert.equal(await provider.remove(sandbox.name), true);
        await lost;
      }
      assert.deepEqual(readdirSync(join(root, stack)), []);
    });
  });
}
