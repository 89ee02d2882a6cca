import assert from 'node:assert/strict';
import { it } from 'node:test';
import { kubectl } from '../../../helpers/kubernetes/cluster.ts';
import { openTestCluster } from '../../../helpers/kubernetes/namespace.ts';
import { openTestSandboxes } from '../../../helpers/kubernetes/sandboxes.ts';
import { foreground } from '../contract.ts';

const taint = 'temper.test/lost:NoExecute';

it('a sandbox whose Pod the cluster deletes for a taint of its node names the loss of the node', async () => {
  const { core } = openTestCluster();
  const { open, specOf } = await openTestSandboxes('node');
  const provider = open();
  const { signal } = new AbortController();
  const node = (await core.listNode()).items[0]?.metadata?.name ?? assert.fail('expected a node');
  try {
    const sandbox = await provider.ensure(specOf('one'), signal);
    const running = sandbox.exec({ ...foreground, timeoutMs: 600_000, argv: ['sleep', '600'] }, signal);
    const lost = assert.rejects(running, { type: 'SandboxLost', loss: 'node-lost', message: /its node was lost/ });
    await kubectl('taint', 'nodes', node, taint);
    await lost;
  } finally {
    await kubectl('taint', 'nodes', node, `${taint}-`);
  }
});
