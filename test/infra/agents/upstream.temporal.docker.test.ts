import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type ScriptedServer, startScriptedServer } from '../../helpers/engine/scripted-server.ts';
import { type AgentCase, agentCases, taskToFix } from '../../helpers/rollouts/agent-cases.ts';
import { type AgentRollouts, startAgentRollouts } from '../../helpers/rollouts/agent-rollouts.ts';

interface Asked {
  readonly messages: readonly { readonly role: string }[];
  readonly tools?: readonly object[];
}

describe('an unmodified agent with an upstream model', () => {
  let model: ScriptedServer;
  let rollouts: AgentRollouts;
  let current: AgentCase;

  before(async () => {
    model = await startScriptedServer({
      'POST /v1/chat/completions': (body) => ({
        status: 200,
        json: {
          model: 'large-1',
          choices: [{ message: { role: 'assistant', ...answer(body as Asked) }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 100, completion_tokens: 10 },
        },
      }),
    });
    const find = async (name: string) => ({
      name,
      url: `${model.url}/v1`,
      model: 'large',
      apiKey: 'sk-secret',
      contextLength: 100_000,
      maxTokensField: 'max_tokens' as const,
      returnsReasoning: false,
      readsImages: false,
      namesSession: false,
    });
    rollouts = await startAgentRollouts(() => assert.fail('expected no request to the policy'), {
      upstreams: { find },
    });
  });
  after(async () => {
    await rollouts?.close();
    await model?.close();
  });

  /** The model's reply: the next call of the script, then a final text; a title if no tools are offered. */
  function answer({ messages, tools }: Asked): object {
    if (tools === undefined) return { content: 'A title' };
    const step = messages.filter(({ role }) => role === 'tool').length;
    const call = current.calls[step];
    if (call === undefined) return { content: 'It is fixed.' };
    const { name, arguments: args } = call;
    return {
      content: 'Continuing.',
      tool_calls: [{ id: `call-${step}`, type: 'function', function: { name, arguments: JSON.stringify(args) } }],
    };
  }

  for (const one of agentCases) {
    it(`${one.agent} solves a task`, async () => {
      current = one;
      const request = { task: taskToFix, agent: one.agent, purpose: 'evaluation', upstream: 'others' } as const;
      const { result, log, evidence } = await rollouts.roll(request);
      assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
      const { trace } = result;
      const turns = one.calls.length + (one.ends > 0 ? 0 : 1) + one.sideTurns;
      assert.deepEqual([trace?.turns, trace?.segments, trace?.sampledTokens], [turns, 0, turns * 10], evidence);
      assert.deepEqual(trace?.upstream, { name: 'others', model: 'large' });
      assert.deepEqual([trace?.counts?.forks, trace?.counts?.branches.main], [one.sideTurns, 1], evidence);
      assert.doesNotMatch(JSON.stringify([result, log, rollouts.gateway.events]), /sk-secret/);
    });
  }
});
