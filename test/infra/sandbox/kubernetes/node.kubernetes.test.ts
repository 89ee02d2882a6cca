import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import { kubectl, programsImage, taskImage } from '../../../helpers/kubernetes/cluster.ts';
import { openTestCluster, testNamespace } from '../../../helpers/kubernetes/namespace.ts';
import { foreground } from '../contract.ts';

const taint = 'temper.test/lost:NoExecute';

it('a sandbox whose Pod the cluster deletes for a taint of its node names the loss of the node', async () => {
  const { core } = openTestCluster();
  const namespace = await testNamespace('node');
  const stack = `node-${process.pid}`;
  const provider = createKubernetesProvider({ stack, namespace, programs: programsImage, requests: 0.01 });
  const signal = AbortSignal.timeout(300_000);
  const node = (await core.listNode()).items[0]?.metadata?.name ?? assert.fail('expected a node');
  const expiresAtMs = Date.now() + 600_000;
  const labels = { stack, run: 'run', rollout: 'one', epoch: 1, purpose: 'agent', expiresAtMs } as const;
  const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64 };
  try {
    const spec = { name: 'one', image: taskImage, labels, ...limits, workdir: '/workspace', mounts: [] };
    const sandbox = await provider.ensure(spec, signal);
    const running = sandbox.exec({ ...foreground, timeoutMs: 120_000, argv: ['sleep', '100'] }, signal);
    const lost = assert.rejects(running, { type: 'SandboxLost', loss: 'node-lost', message: /its node was lost/ });
    await kubectl('taint', 'nodes', node, taint);
    await lost;
  } finally {
    await kubectl('taint', 'nodes', node, `${taint}-`);
    await provider.close();
  }
});
