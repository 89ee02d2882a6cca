import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import Docker from 'dockerode';
import { releaseAgentSandbox } from '../../activities/host/sandbox.ts';
import { createSlots } from '../../activities/host/slots.ts';
import { createEgressPlaces } from '../../infra/egress/places.ts';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { SandboxKind, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { agentSandboxName } from '../../workflows/contracts/ids.ts';

const stack = `release-${process.pid}`;
const attempt = { rollout: 'released', epoch: 1 };

it('releases a local sandbox and its slot while the container engine is unreachable, and throws that failure', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'release-'));
  const unreachable = createDockerProvider({ stack, docker: new Docker({ socketPath: join(root, 'docker.sock') }) });
  const local = createLocalProvider({ root, stack });
  const all = new Map<SandboxKind, SandboxProvider>([
    ['docker', unreachable],
    ['local', local],
  ]);
  const slots = createSlots(1);
  const expiresAtMs = Date.now() + 600_000;
  slots.take(attempt, { expiresAtMs, sweep: false });
  const labels = { stack, run: 'run', ...attempt, purpose: 'agent' as const, expiresAtMs };
  const limits = { cpus: 1, memoryMb: 64, diskMb: 64, pids: 64, workdir: '/workspace', mounts: [] };
  await local.ensure({ name: agentSandboxName(attempt), image: 'none', labels, ...limits }, t.signal);
  t.after(async () => {
    await local.remove(agentSandboxName(attempt));
    rmSync(root, { recursive: true, force: true });
  });
  const network = { places: createEgressPlaces(join(root, 'egress')) };
  const host = { slots, network, providers: { all, seen: async () => all } };

  await assert.rejects(releaseAgentSandbox(host, attempt), { type: 'SandboxUnavailable', message: /Docker daemon/ });
  assert.deepEqual(await local.list(stack), []);
  assert.equal(slots.taken, 0);
});
