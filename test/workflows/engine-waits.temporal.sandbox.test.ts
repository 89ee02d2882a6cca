import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import { taskToFix } from '../helpers/rollouts/agent-cases.ts';
import { type AgentRollouts, startAgentRollouts } from '../helpers/rollouts/agent-rollouts.ts';
import { until } from '../helpers/until.ts';

const submit = { name: 'submit', arguments: {} };
const sleep = { name: 'bash', arguments: { command: 'sleep 600' } };

describe('the clock of an agent', () => {
  let rollouts: AgentRollouts;
  let paused = false;
  let endless = false;
  let call: object = submit;

  before(async () => {
    rollouts = await startAgentRollouts(
      async (_, { model: { tokens } }) => {
        await until(() => !paused);
        return tokens.encode(`<tool_call>\n${JSON.stringify(call)}\n</tool_call><|im_end|>`);
      },
      {
        providerIn: (home) =>
          createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack', spawner: createHelperSpawner() }),
        engineState: { isPaused: () => paused, isEndless: () => endless },
      },
    );
  });
  after(() => rollouts?.close());

  /** Returns how long the agent that has a sandbox has waited for the engine; 0 while there is none. */
  async function waitedMs(): Promise<number> {
    const [{ name } = { name: '' }] = await rollouts.provider.list('test-stack');
    const [, rollout] = /^temper-(.+)-1-agent$/.exec(name) ?? [];
    if (rollout === undefined) return 0;
    return (await rollouts.gateway.control.status(sessionId({ rollout, epoch: 1 })))?.waitedMs ?? 0;
  }

  it('stands still while the engine is paused, for longer than the agent has', async () => {
    call = submit;
    paused = true;
    const agentTimeoutSec = 15;
    const rolling = rollouts.roll({ task: taskToFix, agent: 'mini', agentTimeoutSec });
    await until(async () => (await waitedMs()) > agentTimeoutSec * 1000, 300_000);
    paused = false;
    const { result, evidence } = await rolling;
    assert.deepEqual([result.outcome, result.stop], ['scored', 'submitted'], evidence);
    const { stageSeconds, cost } = result;
    assert.ok((stageSeconds.awaitAgent ?? 0) > agentTimeoutSec, evidence);
    assert.ok((cost?.waitedSeconds ?? 0) > (stageSeconds.awaitAgent ?? 0) - agentTimeoutSec, evidence);
  });

  it('runs on beyond the ceiling, and the rollout says why it has no score', async () => {
    paused = true;
    const limits = { agentTimeoutSec: 8, engineWaitingSec: 3 };
    const { result, evidence } = await rollouts.roll({ task: taskToFix, agent: 'mini', ...limits });
    paused = false;
    assert.deepEqual([result.outcome, result.stop], ['infra', 'deadline'], evidence);
    assert.equal(result.failure?.type, 'EngineWaitExceeded', evidence);
    assert.match(result.failure?.message ?? '', /stands still for 3 s at most \(engineWaitingSec\)/);
    assert.ok((result.cost?.waitedSeconds ?? 0) > 3, evidence);
  });

  it('runs while the agent itself sleeps', async () => {
    call = sleep;
    const { result, evidence } = await rollouts.roll({ task: taskToFix, agent: 'mini', agentTimeoutSec: 8 });
    assert.deepEqual([result.outcome, result.stop], ['scored', 'deadline'], evidence);
    assert.ok((result.stageSeconds.awaitAgent ?? 0) < 30, evidence);
  });

  it('cuts the turn at its limit, which is recorded and not trained', async () => {
    call = submit;
    endless = true;
    const { result, evidence } = await rollouts.roll({ task: taskToFix, agent: 'mini', agentTimeoutSec: 8 });
    endless = false;
    assert.deepEqual([result.outcome, result.stop, result.trace?.turns], ['scored', 'deadline', 1], evidence);
    assert.ok(result.trace && (result.cost?.sampledTokens ?? 0) > 0, evidence);
    const { turns, segments } = await rollouts.gateway.traceOf(result.trace);
    assert.deepEqual([turns[0]?.finishReason, turns[0]?.versions[0]?.version, segments], ['abort', 1, []]);
  });
});
