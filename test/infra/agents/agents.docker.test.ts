import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { secretOf } from '../../../infra/gateway/secret.ts';
import { sessionId } from '../../../workflows/contracts/ids.ts';
import type { RolloutRequest } from '../../../workflows/contracts/rollout.ts';
import type { TestGateway } from '../../helpers/gateway/gateway.ts';
import { type AgentCase, agentCases, mendedTask } from '../../helpers/rollouts/agent-cases.ts';
import { type AgentRollouts, startAgentRollouts } from '../../helpers/rollouts/agent-rollouts.ts';

const run = promisify(execFile);

describe('an unmodified agent in a sealed container', () => {
  let rollouts: AgentRollouts;
  let current: AgentCase;
  /** What the host can see of the sandbox while the agent waits for its second turn. */
  let seen: string;

  before(async () => {
    rollouts = await startAgentRollouts(answer);
  });
  after(() => rollouts?.close());

  /** The policy: the next call of the script, then a last word; a title where no tools are offered. */
  async function answer(
    promptIds: readonly number[],
    { model: { tokens } }: TestGateway,
    sandbox: string,
  ): Promise<readonly number[]> {
    if (!tokens.decode(promptIds).includes('\n<tools>')) return tokens.encode('A title<|im_end|>');
    const response = tokens.idOf('<tool_response>');
    const step = promptIds.filter((id) => id === response).length;
    if (step === 1) seen = await lookFromOutside(sandbox);
    const call = current.calls[step];
    const said = call === undefined ? 'It is mended.' : `I go on.\n<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
    return tokens.encode(`${said}<|im_end|>`);
  }

  const roll = (one: AgentCase, request: Partial<RolloutRequest>) => {
    current = one;
    return rollouts.roll({ task: mendedTask, agent: one.agent, ...request });
  };

  for (const one of agentCases) {
    it(`solves a task: ${one.agent}`, { timeout: 300_000 }, async () => {
      seen = '';
      const { result, log, told, sandbox } = await roll(one, {});
      const { gateway, provider } = rollouts;
      assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], told);
      assert.ok(result.trace !== null, told);
      const trace = await gateway.traceOf(result.trace);
      const ends = one.agent === 'mini' ? 0 : 1;
      const main = trace.segments.filter(({ kind }) => kind === 'main');
      assert.deepEqual([trace.turns.length, main.length], [one.calls.length + ends + one.sideTurns, 1], told);
      assert.deepEqual([trace.maskedTurns, trace.faultyCalls], [[], {}]);

      const secret = secretOf(gateway.options.stackKey, sessionId({ rollout: result.rollout, epoch: result.epochs }));
      assert.match(seen, /relay/, 'the look from outside has to see the agent at work');
      assert.ok(!seen.includes(secret), 'the secret is in docker inspect or in an argv');
      const heard = JSON.stringify(trace.transcript);
      assert.match(heard, /HOME=/, 'the agent has to print its environment');
      assert.equal(heard.includes(secret), one.handsOnKey, 'the secret in the environment of what the agent runs');
      assert.ok(!log.includes(secret), "the secret is in the agent's log");
      assert.ok(!JSON.stringify([gateway.events, result]).includes(secret));
      assert.equal(await provider.attach(sandbox), undefined);
    });
  }

  for (const one of agentCases) {
    it(`ends, and has submitted nothing, at a limit of one turn: ${one.agent}`, { timeout: 300_000 }, async () => {
      const { result, told } = await roll(one, { maxTurns: 1 });
      // The others learn it from the gateway.
      const knowsIt = one.agent === 'mini';
      const stop = knowsIt ? 'turn-limit' : 'crashed';
      assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 0, stop], told);
      assert.deepEqual([result.trace?.turnLimit, result.trace?.engineFailures], [!knowsIt, 0], told);
    });
  }

  for (const one of agentCases.filter(({ agent }) => agent === 'claude-code' || agent === 'opencode')) {
    it(`is refused in a local sandbox, in which it could not start: ${one.agent}`, async () => {
      const { result, told } = await roll(one, { sandbox: 'local' });
      assert.deepEqual([result.outcome, result.failure?.type], ['invalid-task', 'UnsupportedTask'], told);
      assert.match(result.failure?.message ?? '', /the only kind that agent .* runs in, got local/);
    });
  }

  async function lookFromOutside(sandbox: string): Promise<string> {
    const inspected = await run('docker', ['inspect', sandbox]);
    const processes = await run('docker', ['top', sandbox, '-eo', 'pid,args']);
    return inspected.stdout + processes.stdout;
  }
});
