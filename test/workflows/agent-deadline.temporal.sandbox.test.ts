import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { SandboxFailure } from '../../infra/sandbox/failure.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { Sandbox, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';

let rollouts: Rollouts;
/** The number of interruptions of an end of an agent that are still to come. */
let interruptions = 0;
/** Interrupts the next wait for an agent a while after it began, and then runs. */
let afterWait: (() => void) | null = null;

/** Returns a provider whose sandboxes break off as if the worker had died: after the end of an agent, or during a wait for it. */
function interrupting(real: SandboxProvider): SandboxProvider {
  return {
    ...real,
    attach: async (name) => {
      const sandbox = await real.attach(name);
      if (sandbox === undefined) return undefined;
      const killProcesses: Sandbox['killProcesses'] = async (account) => {
        await sandbox.killProcesses(account);
        if (interruptions === 0) return;
        interruptions -= 1;
        throw new SandboxFailure('SandboxUnavailable', 'the engine restarts');
      };
      const wait: Sandbox['wait'] = async (key, options, signal) => {
        if (afterWait === null) return sandbox.wait(key, options, signal);
        // The first report of the activity, which is sent after a second, has to be at the server.
        await sandbox.wait(key, { ...options, timeoutMs: 3_000 }, signal);
        afterWait();
        afterWait = null;
        throw new SandboxFailure('SandboxUnavailable', 'the engine restarts');
      };
      return new Proxy(sandbox, {
        get: (target, name) => {
          if (name === 'killProcesses') return killProcesses;
          if (name === 'wait') return wait;
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    },
  };
}

before(async () => {
  rollouts = await startRollouts((home) => ({
    taskRoots: [join(home, 'tasks')],
    provider: interrupting(
      createLocalProvider({ root: `${home}/sandboxes`, stack: 'test-stack', spawner: createHelperSpawner() }),
    ),
  }));
});
after(() => rollouts?.close());

it('remembers that the time of an agent was over when the attempt that ended it is interrupted', async () => {
  const files = { solve: 'echo right >/workspace/answer.txt; sleep 600' };
  const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'slow', files);
  interruptions = 1;
  const result = await rollouts.run('interrupted', { task, agent: 'oracle', agentTimeoutSec: 15 });
  assert.equal(interruptions, 0);
  assert.deepEqual([result.outcome, result.stop, result.reward], ['scored', 'deadline', 1], JSON.stringify(result));
});

it('gives an agent its whole time when the clock is set forward between two attempts to wait for it', async (t) => {
  const files = { solve: 'sleep 8; echo right >/workspace/answer.txt' };
  const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'forward', files);
  const { now } = Date;
  t.after(() => {
    Date.now = now;
  });
  afterWait = () => {
    Date.now = () => now() + 3_600_000;
  };
  const result = await rollouts.run('forward', { task, agent: 'oracle', agentTimeoutSec: 300 });
  assert.equal(afterWait, null);
  assert.deepEqual([result.outcome, result.stop, result.reward], ['scored', 'submitted', 1], JSON.stringify(result));
});
