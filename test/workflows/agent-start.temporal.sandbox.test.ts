import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { SandboxFailure } from '../../infra/sandbox/failure.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { Sandbox, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { stageInProgress } from '../../workers/cli/commands/show/rollout.ts';
import { rolloutStatusQuery } from '../../workflows/contracts/messages.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { until } from '../helpers/until.ts';

const task = 'generated:train/1/0';
let rollouts: Rollouts;
/** Runs before each start of an agent. */
let beforeStart: () => Promise<void>;

/** Returns a provider whose sandboxes run `beforeStart` before they start an agent. */
function delaying(real: SandboxProvider): SandboxProvider {
  return {
    ...real,
    attach: async (name) => {
      const sandbox = await real.attach(name);
      if (sandbox === undefined) return undefined;
      const start: Sandbox['start'] = async (request, signal) => {
        await beforeStart();
        return sandbox.start(request, signal);
      };
      return new Proxy(sandbox, {
        get: (target, name) => {
          if (name === 'start') return start;
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    },
  };
}

before(async () => {
  rollouts = await startRollouts((home) => ({
    provider: delaying(
      createLocalProvider({ root: `${home}/sandboxes`, stack: 'test-stack', spawner: createHelperSpawner() }),
    ),
  }));
});
after(() => rollouts?.close());

/** Returns the stage that `temper show` shows. */
async function shown(workflowId: string): Promise<string> {
  const handle = rollouts.client.workflow.getHandle(workflowId);
  const { stage } = await handle.query(rolloutStatusQuery);
  return stageInProgress({ description: await handle.describe() }, stage);
}

it('shows whether the agent is being started or runs, and counts its time from its start', async () => {
  const started = Promise.withResolvers<void>();
  beforeStart = () => started.promise;
  const handle = await rollouts.start('slow-start', { task, agent: 'oracle', agentTimeoutSec: 20 });
  await until(async () => (await shown('slow-start')) === 'startAgent');
  const reportedAt = Date.now();
  await until(() => Date.now() - reportedAt > 20_500);
  const releasedAt = Date.now();
  started.resolve();
  const { outcome, reward, stop, stageSeconds } = await handle.result();
  assert.deepEqual([outcome, reward, stop], ['scored', 1, 'submitted']);
  const { startAgent = 0, awaitAgent = 0 } = stageSeconds;
  assert.ok(startAgent > 20 && awaitAgent <= (Date.now() - releasedAt) / 1000, JSON.stringify(stageSeconds));
});

it('starts the agent again when that failed for a while, and an agent that was started only once', async () => {
  let starts = 0;
  beforeStart = async () => {
    starts += 1;
    if (starts < 3) throw new SandboxFailure('SandboxUnavailable', 'the engine restarts');
  };
  const { outcome, reward, epochs } = await rollouts.run('retried-start', { task, agent: 'oracle' });
  assert.deepEqual([outcome, reward, epochs, starts], ['scored', 1, 1, 3]);
});

it('names the start as the stage that failed', async () => {
  beforeStart = async () => {
    throw new SandboxFailure('UnsupportedTask', 'the agent cannot be started here');
  };
  const { outcome, failure, stageSeconds } = await rollouts.run('failed-start', { task, agent: 'oracle' });
  assert.deepEqual(
    [outcome, failure],
    ['invalid-task', { type: 'UnsupportedTask', message: 'the agent cannot be started here', stage: 'startAgent' }],
  );
  assert.ok('startAgent' in stageSeconds && !('awaitAgent' in stageSeconds), JSON.stringify(stageSeconds));
  assert.deepEqual(await rollouts.sandboxes(), []);
});
