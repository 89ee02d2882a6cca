import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import { startApiProxy } from '../../../helpers/kubernetes/api-proxy.ts';
import { programsImage } from '../../../helpers/kubernetes/cluster.ts';
import { openTestCluster, testNamespace } from '../../../helpers/kubernetes/namespace.ts';
import { agentCases, taskToFix } from '../../../helpers/rollouts/agent-cases.ts';
import { startAgentRollouts } from '../../../helpers/rollouts/agent-rollouts.ts';
import { until } from '../../../helpers/until.ts';

it('an agent works in a Pod, over a stream that is cut in a turn, and another Pod grades it', async () => {
  const [{ agent, calls }] = agentCases as [(typeof agentCases)[number]];
  const { config } = openTestCluster();
  const namespace = await testNamespace('rollout');
  const proxy = await startApiProxy(config);
  process.env.KUBECONFIG = proxy.kubeconfig;
  const settings = { stack: 'test-stack', namespace, programs: programsImage, requests: 0.01 };
  const provider = createKubernetesProvider(settings);
  let sampled = 0;
  const rollouts = await startAgentRollouts(
    async (_, { model: { tokens } }) => {
      const call = calls[sampled];
      sampled += 1;
      if (sampled === 1) proxy.cut();
      return tokens.encode(`<tool_call>\n${JSON.stringify(call)}\n</tool_call><|im_end|>`);
    },
    { channel: 'stream', providerIn: () => provider },
  );
  try {
    const { result, evidence } = await rollouts.roll({ task: taskToFix, agent });
    assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
    assert.equal(sampled, calls.length, 'expected each turn to be sampled once');
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    assert.equal(proxy.requests.filter(({ method, path }) => method === 'POST' && path === pods).length, 2);
    await until(async () => (await provider.list('test-stack')).length === 0);
  } finally {
    await rollouts.close();
    await provider.close();
    await proxy.close();
  }
});
