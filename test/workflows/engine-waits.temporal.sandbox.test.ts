import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { taskToFix } from '../helpers/rollouts/agent-cases.ts';
import { type AgentRollouts, startAgentRollouts } from '../helpers/rollouts/agent-rollouts.ts';
import { until } from '../helpers/until.ts';

const submit = { name: 'submit', arguments: {} };
const sleep = { name: 'bash', arguments: { command: 'sleep 600' } };

describe('the clock of an agent', () => {
  let rollouts: AgentRollouts;
  let paused = false;
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
        isPaused: () => paused,
      },
    );
  });
  after(() => rollouts?.close());

  it('stands still while the engine is paused, for longer than the agent has', async () => {
    call = submit;
    paused = true;
    const agentTimeoutSec = 10;
    const rolling = rollouts.roll({ task: taskToFix, agent: 'mini', agentTimeoutSec });
    const began = performance.now();
    await until(() => performance.now() - began > 20_000);
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
});
