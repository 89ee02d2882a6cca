import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { packagedAgents } from '../../../../infra/agents/packages.ts';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import { loadImages } from '../../../helpers/kubernetes/cluster.ts';
import { testNamespace } from '../../../helpers/kubernetes/namespace.ts';
import { type AgentCase, agentCases, taskToFix } from '../../../helpers/rollouts/agent-cases.ts';
import { type AgentRollouts, startAgentRollouts } from '../../../helpers/rollouts/agent-rollouts.ts';
import { replaceImage } from '../../../helpers/sandbox/replace-image.ts';
import { repositoryRoot } from '../../../helpers/sources.ts';

const run = promisify(execFile);
const programs = 'temper-programs:agents';

const namespace = await testNamespace('agents');

describe('an unmodified agent in a Pod', () => {
  let provider: ReturnType<typeof createKubernetesProvider>;
  let rollouts: AgentRollouts;
  let current: AgentCase;

  before(async () => {
    const script = join(repositoryRoot, 'infra/images/programs.ts');
    await replaceImage(programs, () => run(process.execPath, [script, programs, ...packagedAgents]));
    await loadImages(programs);
    provider = createKubernetesProvider({ stack: 'test-stack', namespace, programs, requests: 0.01 });
    rollouts = await startAgentRollouts(
      async (promptIds, { model: { tokens } }) => {
        if (!tokens.decode(promptIds).includes('\n<tools>')) return tokens.encode('A title<|im_end|>');
        const response = tokens.idOf('<tool_response>');
        const call = current.calls[promptIds.filter((id) => id === response).length];
        const said = call === undefined ? 'It is fixed.' : `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
        return tokens.encode(`${said}<|im_end|>`);
      },
      { channel: 'stream', providerIn: () => provider },
    );
  });
  after(async () => {
    await rollouts?.close();
    await provider?.close();
  });

  for (const one of agentCases.filter(({ agent }) => packagedAgents.some((name) => name === agent))) {
    it(`${one.agent} solves a task, and another Pod grades it`, async () => {
      current = one;
      const { result, evidence } = await rollouts.roll({ task: taskToFix, agent: one.agent });
      assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
    });
  }
});
