import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import type { KubernetesSettings } from '../../../../infra/sandbox/kubernetes/settings.ts';
import type { SandboxSpec } from '../../../../infra/sandbox/sandbox.ts';
import { programsImage, taskImage } from '../../../helpers/kubernetes/cluster.ts';
import { openTestCluster, testNamespace } from '../../../helpers/kubernetes/namespace.ts';
import { foreground, sh } from '../contract.ts';

const signal = AbortSignal.timeout(300_000);

describe('a failure of a kubernetes sandbox', { concurrency: 8 }, async () => {
  const { core } = openTestCluster();
  const namespace = await testNamespace('failures');
  const restricted = await testNamespace('restricted', 'restricted');
  const stack = `failures-${process.pid}`;
  const open = (changes: Partial<KubernetesSettings> = {}) => {
    const provider = createKubernetesProvider({
      stack,
      namespace,
      programs: programsImage,
      requests: 0.01,
      ...changes,
    });
    after(() => provider.close());
    return provider;
  };
  const provider = open();
  const specOf = (name: string, changes: Partial<SandboxSpec> = {}): SandboxSpec => {
    const expiresAtMs = Date.now() + 600_000;
    const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent', expiresAtMs } as const;
    const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64 };
    return { name, image: taskImage, labels, ...limits, workdir: '/workspace', mounts: [], ...changes };
  };

  it('names a Pod deleted by hand as removed', async () => {
    const sandbox = await provider.ensure(specOf('deleted'), signal);
    const running = sandbox.exec({ ...foreground, timeoutMs: 60_000, argv: ['sleep', '60'] }, signal);
    const lost = assert.rejects(running, { type: 'SandboxLost', loss: 'removed' });
    await core.deleteNamespacedPod({ namespace, name: 'deleted' });
    await lost;
  });

  it('names the deadline that a Pod reached', async () => {
    const spec = specOf('late');
    const expiresAtMs = Date.now() - 894_000;
    const sandbox = await provider.ensure({ ...spec, labels: { ...spec.labels, expiresAtMs } }, signal);
    const running = sandbox.exec({ ...foreground, timeoutMs: 60_000, argv: ['sleep', '60'] }, signal);
    await assert.rejects(running, { type: 'SandboxLost', loss: 'deadline', message: /DeadlineExceeded/ });
  });

  it("counts the eviction of a Pod that passed its own limit of disk as the agent's doing", async () => {
    const sandbox = await provider.ensure(specOf('full', { diskMb: 1 }), signal);
    const argv = sh('for n in $(seq 1200); do head -c 1000000 /dev/zero >f$n; done; sleep 100');
    const running = sandbox.exec({ ...foreground, timeoutMs: 120_000, argv }, signal);
    await assert.rejects(running, { type: 'SandboxLost', loss: 'out-of-disk', message: /Evicted/ });
  });

  it('names an image that no registry has or that could not be pulled', async () => {
    const image = 'localhost:1/no-such-image:1';
    await assert.rejects(provider.ensure(specOf('imageless', { image }), signal), (error: Error) => {
      assert.match(error.message, /localhost:1\/no-such-image:1/);
      return 'type' in error && error.type === 'ImageUnavailable';
    });
  });

  it('says that no node has room', async () => {
    const waiting = open({ scheduleSec: 3, requests: 1 }).ensure(specOf('huge', { memoryMb: 1_000_000 }), signal);
    await assert.rejects(waiting, { type: 'SandboxUnavailable', message: /Insufficient memory/ });
  });

  it('names the Pod Security that forbids its Pods, and a namespace that does not exist', async () => {
    const forbidden = open({ namespace: restricted }).ensure(specOf('forbidden'), signal);
    await assert.rejects(forbidden, { type: 'SandboxUnavailable', message: /Pod Security.*baseline/ });
    const nowhere = open({ namespace: 'no-such-namespace' }).ensure(specOf('nowhere'), signal);
    await assert.rejects(nowhere, { type: 'SandboxUnavailable', message: /no-such-namespace.*does not exist/ });
  });
});
