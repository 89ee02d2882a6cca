import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { secretOf } from '../../../infra/gateway/secret.ts';
import { sessionId } from '../../../workflows/contracts/ids.ts';
import type { RolloutRequest } from '../../../workflows/contracts/rollout.ts';
import type { TestGateway } from '../../helpers/gateway/gateway.ts';
import { type AgentCase, agentCases, taskToFix } from '../../helpers/rollouts/agent-cases.ts';
import { type AgentRollouts, startAgentRollouts } from '../../helpers/rollouts/agent-rollouts.ts';

const run = promisify(execFile);

describe('an unmodified agent in a sealed container', () => {
  let rollouts: AgentRollouts;
  let current: AgentCase;
  /** The calls of host tools after those that fix the task; the last one ends the agent. */
  let handingIn: readonly { readonly name: string; readonly arguments: object }[] = [];
  /** The host's view of the sandbox while the agent waits for its second turn. */
  let seen: string;

  before(async () => {
    rollouts = await startAgentRollouts(answer);
  });
  after(() => rollouts?.close());

  /** The policy's reply: the next call of the script, then a final text; a title if no tools are offered. */
  async function answer(
    promptIds: readonly number[],
    { model: { tokens } }: TestGateway,
    sandbox: string,
  ): Promise<readonly number[]> {
    if (!tokens.decode(promptIds).includes('\n<tools>')) return tokens.encode('A title<|im_end|>');
    const response = tokens.idOf('<tool_response>');
    const step = promptIds.filter((id) => id === response).length;
    if (step === 1) seen = await lookFromOutside(sandbox);
    const call = [...current.calls, ...handingIn][step];
    const said =
      call === undefined ? 'It is fixed.' : `Continuing.\n<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
    return tokens.encode(`${said}<|im_end|>`);
  }

  const roll = ({ calls, ...one }: AgentCase, request: Partial<RolloutRequest>) => {
    current = { ...one, calls: calls.slice(0, calls.length - one.ends) };
    handingIn = [
      { name: one.hostTool('answer'), arguments: { answer: `by ${one.agent}` } },
      { name: one.hostTool('submit'), arguments: {} },
    ];
    return rollouts.roll({ task: taskToFix, agent: one.agent, ...request });
  };

  for (const one of agentCases) {
    it(`${one.agent} solves a task and hands it in by a host tool`, async () => {
      seen = '';
      const { result, log, evidence, sandbox } = await roll(one, { hostTools: ['submit', 'answer'] });
      const { gateway, provider } = rollouts;
      assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
      assert.ok(result.trace !== null, evidence);
      const trace = await gateway.traceOf(result.trace);
      const main = trace.segments.filter(({ kind }) => kind === 'main');
      assert.deepEqual([trace.turns.length, main.length], [current.calls.length + 2 + one.sideTurns, 1], evidence);
      assert.deepEqual([trace.maskedTurns, trace.faultyCalls], [[], {}]);
      assert.deepEqual(
        trace.hostCalls?.map(({ tool, failed }) => [tool, failed]),
        [
          ['answer', undefined],
          ['submit', undefined],
        ],
      );
      assert.equal(String(await gateway.store.get(result.trace.answer?.digest ?? '')), `by ${one.agent}`);

      const secret = secretOf(
        gateway.options.stackKeys[0],
        sessionId({ rollout: result.rollout, epoch: result.epochs }),
      );
      assert.match(seen, /relay/, 'expected the host to see the agent at work');
      assert.ok(!seen.includes(secret), 'expected no secret in docker inspect or in an argv');
      const transcript = JSON.stringify(trace.transcript);
      assert.match(transcript, /HOME=/, 'expected the agent to print its environment');
      assert.equal(
        transcript.includes(secret),
        one.passesKeyOn,
        "the secret in the environment of the agent's commands",
      );
      assert.ok(!log.includes(secret), "expected no secret in the agent's log");
      assert.ok(!JSON.stringify([gateway.events, result]).includes(secret));
      assert.equal(await provider.attach(sandbox), undefined);
    });
  }

  for (const one of agentCases) {
    it(`${one.agent} ends without a submission at a limit of one turn`, async () => {
      const { result, evidence } = await roll(one, { maxTurns: 1 });
      // The other agents learn their limit from the gateway.
      const knowsIt = one.ends > 0;
      assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 0, 'turn-limit'], evidence);
      assert.deepEqual([result.trace?.turnLimit, result.trace?.engineFailures], [!knowsIt, 0], evidence);
    });
  }

  for (const one of agentCases.filter(({ agent }) => agent === 'claude-code' || agent === 'opencode')) {
    it(`${one.agent} is rejected in a local sandbox, where it could not start`, async () => {
      const { result, evidence } = await roll(one, { sandbox: 'local' });
      assert.deepEqual([result.outcome, result.failure?.type], ['invalid-task', 'UnsupportedTask'], evidence);
      assert.match(result.failure?.message ?? '', /sandboxes that agent .* runs in \(docker, .*\), got local/);
    });
  }

  async function lookFromOutside(sandbox: string): Promise<string> {
    const inspected = await run('docker', ['inspect', sandbox]);
    const processes = await run('docker', ['top', sandbox, '-eo', 'pid,args']);
    return inspected.stdout + processes.stdout;
  }
});
