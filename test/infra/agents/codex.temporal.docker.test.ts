import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { TestGateway } from '../../helpers/gateway/gateway.ts';
import { agentCases, taskToFix } from '../../helpers/rollouts/agent-cases.ts';
import { type AgentRollouts, startAgentRollouts } from '../../helpers/rollouts/agent-rollouts.ts';

const summary = 'SUMMARY: stock.js has a wrong operator.';
const { calls = [] } = agentCases.find(({ agent }) => agent === 'codex') ?? {};
/** Prints enough to outgrow the limit; the tokens of the test's model are bytes. */
const longOutput = { name: 'exec_command', arguments: { cmd: 'seq 1 20000' } };

describe('Codex', () => {
  let rollouts: AgentRollouts;
  let turns = 0;
  const compactions: string[] = [];

  before(async () => {
    rollouts = await startAgentRollouts(answer);
  });
  after(() => rollouts?.close());

  async function answer(promptIds: readonly number[], { model: { tokens } }: TestGateway): Promise<readonly number[]> {
    const prompt = promptIds.map(tokens.nameOf).join('');
    const last = prompt.slice(prompt.lastIndexOf('<|im_start|>user'));
    if (/compact/i.test(last) && !last.includes(summary)) {
      compactions.push(last);
      return tokens.encode(`${summary}<|im_end|>`);
    }
    const call = [longOutput, ...calls][turns];
    turns += 1;
    const text = call === undefined ? 'It is fixed.' : `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
    return tokens.encode(`${text}<|im_end|>`);
  }

  it('compacts its conversation by itself, without the path by which OpenAI does it, and continues', async () => {
    const agentOptions = { arguments: ['-c', 'model_auto_compact_token_limit=45000'] };
    const { result, evidence } = await rollouts.roll({ task: taskToFix, agent: 'codex', agentOptions });
    assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
    assert.equal(compactions.length, 1, evidence);
    assert.ok(result.trace !== null, evidence);
    const { branches = [] } = await rollouts.gateway.traceOf(result.trace);
    assert.ok(
      branches.some(({ kind }) => kind === 'compaction'),
      JSON.stringify(branches),
    );
  });
});
