import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { attachAgentSandbox } from '../../../activities/host/host.ts';
import { createSlots } from '../../../activities/host/slots.ts';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import { openProviders, type Providers } from '../../../infra/sandbox/providers.ts';
import type { SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import { agentSandboxName } from '../../../workflows/contracts/ids.ts';

const image = 'temper-tasks:bookworm';
const stack = `away-${process.pid}`;
const attempt = { rollout: stack, epoch: 1 };
const task = { id: 'some-task', image, workdir: '/workspace' };
const files = { filesInImage: false };

/** The real engine behind a socket of the test's own, which can become unreachable without affecting other tests. */
function engineAt(path: string) {
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const engine = connect('/var/run/docker.sock');
    for (const [from, to] of [
      [client, engine],
      [engine, client],
    ] as const) {
      open.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => open.delete(from));
    }
  });
  return {
    start: async () => {
      server.listen(path);
      await once(server, 'listening');
    },
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

describe('a container engine that is unreachable when a host opens its sandboxes', () => {
  const root = mkdtempSync(join(tmpdir(), 'engine-away-'));
  const socket = join(root, 'docker.sock');
  const engine = engineAt(socket);
  const earlier = process.env.DOCKER_HOST;
  const { signal } = new AbortController();
  let real: SandboxProvider;
  let providers: Providers;
  const host = () => ({ name: 'some-host', providers, fence: () => null, slots: createSlots(1) });

  before(async () => {
    real = createDockerProvider({ stack });
    const labels = {
      stack,
      run: 'run',
      ...attempt,
      purpose: 'agent' as const,
      expiresAtMs: Date.now() + 600_000,
    };
    const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64, workdir: '/workspace', mounts: [] };
    await real.ensure({ name: agentSandboxName(attempt), image, labels, ...limits }, signal);
    process.env.DOCKER_HOST = `unix://${socket}`;
    providers = await openProviders({ stack, root, preferred: 'auto' });
  });
  after(async () => {
    if (earlier === undefined) delete process.env.DOCKER_HOST;
    else process.env.DOCKER_HOST = earlier;
    await real.remove(agentSandboxName(attempt));
    rmSync(root, { recursive: true, force: true });
  });

  it('does not prove that a sandbox is gone, and does not block local ones', async () => {
    assert.deepEqual([...(await providers.seen()).keys()], ['local']);
    await assert.rejects(attachAgentSandbox(host(), { epoch: attempt, kind: 'docker' }), {
      type: 'SandboxUnavailable',
      message: /Docker daemon/,
    });
    assert.equal((await providers.choose('auto', task, files)).kind, 'local');
    await assert.rejects(providers.choose('docker', task, files), { type: 'SandboxUnavailable' });
    await assert.rejects(providers.ready('docker'), { type: 'SandboxUnavailable', message: /Docker daemon/ });
  });

  it('does not stop a host that prefers it from starting', async () => {
    const preferring = await openProviders({ stack, root, preferred: 'docker' });
    await assert.rejects(preferring.choose('auto', task, files), { type: 'SandboxUnavailable' });
  });

  it('is checked again, and serves its sandboxes and tasks once it is up', async () => {
    await engine.start();
    assert.equal(
      (await attachAgentSandbox(host(), { epoch: attempt, kind: 'docker' })).name,
      agentSandboxName(attempt),
    );
    assert.equal((await providers.choose('auto', task, files)).kind, 'docker');
    assert.deepEqual([...(await providers.seen()).keys()].sort(), ['docker', 'local']);
    assert.equal((await providers.ready('docker')).kind, 'docker');
  });

  it('keeps its tasks waiting when it becomes unreachable again, instead of giving them to another kind', async () => {
    await engine.stop();
    await assert.rejects(providers.choose('auto', task, files), { type: 'SandboxUnavailable' });
    await assert.rejects(attachAgentSandbox(host(), { epoch: attempt, kind: 'docker' }), {
      type: 'SandboxUnavailable',
    });
  });

  it('has lost a sandbox only if it says so itself', async () => {
    await engine.start();
    await real.remove(agentSandboxName(attempt));
    await assert.rejects(attachAgentSandbox(host(), { epoch: attempt, kind: 'docker' }), { type: 'SandboxLost' });
    await engine.stop();
  });
});
