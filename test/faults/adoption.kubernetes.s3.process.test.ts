import assert from 'node:assert/strict';
import { it } from 'node:test';
import { programsImage } from '../helpers/kubernetes/cluster.ts';
import { openTestCluster, testNamespace } from '../helpers/kubernetes/namespace.ts';
import { until } from '../helpers/until.ts';
import { limitMs, otherThan, startTwoHosts } from './two-hosts.ts';

it('a host adopts the Pod of one that is gone, and the agent in it works on', async () => {
  const { core } = openTestCluster();
  const namespace = await testNamespace('adoption');
  const pods = async (): Promise<readonly (string | undefined)[]> =>
    (await core.listNamespacedPod({ namespace })).items.map(({ metadata }) => metadata?.uid);
  const settings = {
    KUBECONFIG: process.env.KUBECONFIG ?? assert.fail('expected a cluster'),
    TEMPER_KUBERNETES_NAMESPACE: namespace,
    TEMPER_KUBERNETES_PROGRAMS: programsImage,
    TEMPER_KUBERNETES_REQUESTS: '0.01',
  };
  const hosts = await startTwoHosts({ sandbox: 'kubernetes', settings });
  try {
    const rollout = await hosts.startRollout('killed');
    const before = await pods();
    assert.equal(before.length, 1);
    hosts.signal(rollout.host, 'SIGKILL');
    await hosts.forget(rollout.host);
    await rollout.adoptedBy(otherThan(rollout.host));
    assert.deepEqual(await pods(), before);
    rollout.waiting[1]?.resolve();
    await hosts.assertUnbroken(await rollout.result());
    await until(async () => (await pods()).length === 0, limitMs);
  } finally {
    await hosts.close();
  }
});
