import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { SandboxFailure } from '../../infra/sandbox/failure.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { Sandbox, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { SweepReport, SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';

let rollouts: Rollouts;
/** The number of interruptions of an end of an agent that are still to come. */
let interruptions = 0;
/** The memory of sandboxes that are lost whenever they are made. */
const lostMb = 513;
/** Interrupts the next wait for an agent a while after it began, and then runs. */
let afterWait: (() => void) | null = null;

/** Returns a provider whose sandboxes break off as if the worker had died: after the end of an agent, or during a wait for it. */
function interrupting(real: SandboxProvider): SandboxProvider {
  return {
    ...real,
    ensure: async (spec, signal) => {
      if (spec.memoryMb !== lostMb) return real.ensure(spec, signal);
      throw new SandboxFailure('SandboxLost', `sandbox ${spec.name} was removed from outside`);
    },
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

it('counts as a failure of a sweep what its input does not score, and leaves out what was lost', async () => {
  const root = join(rollouts.home, 'tasks', 'set');
  await writeHarborTask(root, 'fast', { solve: 'echo right >/workspace/answer.txt' });
  await writeHarborTask(root, 'slow', { solve: 'echo right >/workspace/answer.txt; sleep 600' });
  const toml = `[environment]\ndocker_image = "temper-tasks:bookworm"\nmemory_mb = ${lostMb}\n`;
  await writeHarborTask(root, 'lost', { solve: 'echo right >/workspace/answer.txt', toml });
  const settings: SweepRequest['settings'] = { agent: 'oracle', sandbox: 'local', agentTimeoutSec: 10 };
  const args: [SweepRequest] = [
    { tasks: `harbor:${root}`, infraRetries: 1, settings: { ...settings, unscored: ['deadline'] } },
  ];
  const start = { taskQueue: controlQueue, workflowId: 'unscored', args };
  const result: SweepResult = await rollouts.client.workflow.execute('evaluationSweep', start);
  const told = JSON.stringify(result);
  assert.deepEqual([result.tasks, result.counted, result.unscored, result.leftOut.infra], [3, 2, 1, 1], told);
  assert.deepEqual([result.passAt1?.mean, result.passAt1?.tasks, result.leftOut.cancelled], [0.5, 2, 0], told);
  const { taskScores } = (await rollouts.store.getJson(result.report.digest)) as SweepReport;
  assert.deepEqual(taskScores.map(({ task, passed, counted, leftOut }) => [task, passed, counted, leftOut]).sort(), [
    ['fast', 1, 1, 0],
    ['lost', 0, 0, 1],
    ['slow', 0, 1, 0],
  ]);
});

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
