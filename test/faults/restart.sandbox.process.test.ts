import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ApplicationFailure, type Client } from '@temporalio/client';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { readConfig } from '../../infra/settings/config.ts';
import { openStackId } from '../../infra/stack.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { connectClient } from '../../infra/temporal/connection.ts';
import { workerKilled } from '../../infra/temporal/left-attempts.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { answerTest, writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { until } from '../helpers/until.ts';

/** A value of `temporal.api.enums.v1.PendingActivityState`. */
const startedState = 2;
const limitMs = 240_000;
/** The agent: waits for the file `go`, then writes the number of its starts as its answer. */
const solve = 'echo started >>starts; while [ ! -e go ]; do sleep 0.05; done; cat starts >answer.txt; rm starts go';
const test = answerTest.replace('= right', '= started');

interface Attempt {
  readonly workflowId: string;
  readonly attempt: number;
}

describe('a stack whose host worker is killed, and that is stopped and started again, while agents work', () => {
  let home: string;
  let stack: RunningStack;
  let provider: SandboxProvider;
  let stackId: string;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-restart-'));
  });
  after(async () => {
    await stack?.close();
    await provider?.close();
    await rm(home, { recursive: true, force: true });
  });

  it('leaves the agents running, watches them again at once, resumes their rollouts, and starts no agent twice', async () => {
    const config = readConfig({
      ...process.env,
      TEMPORAL_ADDRESS: undefined,
      TEMPER_HOME: home,
      TEMPER_SANDBOX: 'local',
      TEMPER_HOST: 'restarted',
      TEMPER_TEMPORAL_PORT: String(await freePort()),
      TEMPER_UI_PORT: String(await freePort()),
      TEMPER_TASK_ROOTS: home,
    });
    const up = () => startStack({ config, parts: ['temporal', 'control', 'host'] }, AbortSignal.timeout(limitMs));
    const task = await writeHarborTask(join(home, 'tasks'), 'waits', { solve, test });
    const ids = ['restart-1', 'restart-2'] as const;

    stack = await up();
    stackId = await openStackId(config.paths, createDirectory(home));
    provider = createLocalProvider({ root: config.paths.sandboxes, stack: stackId });
    const first = await connectClient(temporalTarget(config));
    for (const workflowId of ids) {
      const args = [{ task, agent: 'oracle', sandbox: 'local' }];
      await first.client.workflow.start('rollout', { taskQueue: controlQueue, workflowId, args });
    }
    await until(async () => (await started()) === ids.length, limitMs);
    for (const workflowId of ids) await untilStarted(first.client, { workflowId, attempt: 1 });
    await killHost(() => untilGivenAgain(first.client, ids[1]));
    await untilReturned(first.client, { workflowId: ids[0], attempt: 2 });
    await untilReturned(first.client, { workflowId: ids[1], attempt: 3 });
    await first.close();
    await stack.close();
    assert.equal(await started(), ids.length, 'expected the agents to continue');

    stack = await up();
    const second = await connectClient(temporalTarget(config));
    for (const { name } of await provider.list(stackId)) await run(name, 'touch', 'go');
    for (const workflowId of ids) {
      const result = (await second.client.workflow.getHandle(workflowId).result()) as RolloutResult;
      const { outcome, reward, stop, epochs } = result;
      assert.deepEqual([outcome, reward, stop, epochs], ['scored', 1, 'submitted', 1], JSON.stringify(result));
    }
    await second.close();
    assert.deepEqual(await provider.list(stackId), []);
  });

  /** Kills the host worker. From `before` on it stands still, while the server takes it for alive. */
  async function killHost(before: () => Promise<void>): Promise<void> {
    const pidOfHost = () => stack.parts().find(({ name }) => name === 'host')?.pid ?? null;
    const pid = pidOfHost() ?? assert.fail('the host worker does not run');
    process.kill(pid, 'SIGSTOP');
    try {
      await before();
    } finally {
      process.kill(pid, 'SIGKILL');
    }
    await until(() => pidOfHost() !== null && pidOfHost() !== pid, limitMs);
  }

  /** Makes the server give the next attempt to a poll of the worker that stands still, which will never know of it. */
  async function untilGivenAgain(client: Client, workflowId: string): Promise<void> {
    const { activityId } = await untilStarted(client, { workflowId, attempt: 1 });
    assert.ok(activityId);
    await client.activity.fail({ workflowId, activityId }, ApplicationFailure.retryable('the test asks for another'));
    await untilStarted(client, { workflowId, attempt: 2 });
  }

  const untilStarted = (client: Client, { workflowId, attempt }: Attempt) =>
    until(async () => {
      const [pending] = (await client.workflow.getHandle(workflowId).describe()).raw.pendingActivities ?? [];
      return pending?.attempt === attempt && pending.state === startedState && pending;
    }, limitMs);

  /** Waits until the agent is watched again, because the worker's successor has said so and not because a heartbeat was missing. */
  async function untilReturned(client: Client, attempt: Attempt): Promise<void> {
    const activity = await untilStarted(client, attempt);
    assert.equal(activity.lastFailure?.applicationFailureInfo?.type, workerKilled, JSON.stringify(activity));
  }

  /** The number of agents that have started and not ended. */
  async function started(): Promise<number> {
    const sandboxes = await provider.list(stackId);
    const codes = await Promise.all(sandboxes.map(({ name }) => run(name, 'test', '-e', 'starts')));
    return codes.filter((code) => code === 0).length;
  }

  async function run(name: string, ...argv: readonly [string, ...string[]]): Promise<number | null> {
    const sandbox = await provider.attach(name);
    const request = {
      argv,
      cwd: '/workspace',
      account: 'agent',
      env: {},
      timeoutMs: limitMs,
      maxOutputBytes: 0,
    } as const;
    return sandbox === undefined ? null : (await sandbox.exec(request, AbortSignal.timeout(limitMs))).exitCode;
  }
});
