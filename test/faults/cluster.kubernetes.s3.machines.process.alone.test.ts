import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { apiStatus } from '../../infra/sandbox/kubernetes/client.ts';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { type ClientConnection, connectClient } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import { bringUp, programsImage, signalComponent, takeDown } from '../helpers/kubernetes/cluster.ts';
import { createTestNamespace, openTestCluster, testNamespace } from '../helpers/kubernetes/namespace.ts';
import { until } from '../helpers/until.ts';
import { pendingOf, turn } from './pending.ts';
import { rolloutResults } from './rollout-results.ts';
import { partOf } from './victims.ts';

const runId = 'on-a-cluster';
/** Longer than the four minutes after which an activity counts as lost that its worker never got. */
const limitMs = 600_000;
/** The time for which the kubelet and the API server are stopped: a minute, or in CI as long as a request of the host waits. */
const stoppedMs = Number(process.env.TEMPER_TEST_STOPPED_SECONDS ?? (process.env.CI === 'true' ? 35 : 60)) * 1_000;
const request: RunRequest = {
  tasks: 'generated:train/3',
  steps: 4,
  groupsPerStep: 2,
  rolloutsPerGroup: 2,
  maxStaleness: 1,
  onStale: 'keep',
  training: { zeroVariance: 'keep' },
  settings: {
    agent: 'mini',
    sandbox: 'kubernetes',
    maxTurns: 6,
    agentTimeoutSec: 600,
    sampling: { maxTokensPerTurn: 48 },
  },
};

/** The end of a fault that lasts. */
type Fault = (() => Promise<unknown>) | undefined;

/** Each fault comes while an agent waits for a turn, so that it meets it at work. */
describe('a training run in Pods whose cluster fails in every way', async () => {
  const { core } = openTestCluster();
  const namespace = await testNamespace('run');
  let home: string;
  let config: Config;
  let stack: RunningStack;
  let connection: ClientConnection;
  let status: RunStatus;
  let rollouts: readonly RolloutResult[];

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-cluster-'));
    config = readConfig({
      ...process.env,
      TEMPER_HOME: home,
      TEMPER_SANDBOX: 'kubernetes',
      TEMPER_KUBERNETES_NAMESPACE: namespace,
      TEMPER_KUBERNETES_PROGRAMS: programsImage,
      TEMPER_KUBERNETES_REQUESTS: '0.01',
      TEMPER_CAPACITY: '3',
      TEMPER_HOST: 'cluster',
      TEMPER_TEMPORAL_PORT: String(await freePort()),
      TEMPER_UI_PORT: String(await freePort()),
      TEMPER_POLICY_PORT: String(await freePort()),
    });
    stack = await startStack({ config }, AbortSignal.timeout(limitMs));
    connection = await connectClient(temporalTarget(config));
    const { client } = connection;
    await client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId: runId, args: [request] });
    await whileAtWork(client, 'its Pods were deleted', deletePods);
    await whileAtWork(client, 'its host worker was killed', killHost);
    await whileAtWork(client, 'the kubelet was stopped for a while', () => stopComponent('kubelet'));
    await whileAtWork(client, 'the API server was stopped for a while', () => stopComponent('kube-apiserver'));
    await whileAtWork(client, 'the cluster was lost, and an empty one came up', loseCluster);
    status = await client.workflow.getHandle(runId).result();
    rollouts = await rolloutResults(client);
  });
  after(async () => {
    await connection?.close();
    await stack?.close();
    await rm(home, { recursive: true, force: true });
  });

  /**
   * Waits until an agent waits for a turn, for which the policy server is stopped, and then begins a fault. Its second part comes
   * when the agent has its turn or waits for the cluster.
   */
  async function whileAtWork(client: Client, what: string, begin: () => Promise<Fault>): Promise<void> {
    const policy = stack.parts().find(({ name }) => name === 'policy')?.pid ?? assert.fail('expected a policy server');
    let stopped = false;
    await until(async () => {
      const { status: now } = await client.workflow.getHandle(runId).describe();
      assert.equal(now.name, 'RUNNING', `the run ended before ${what}`);
      let [agents, turns] = [0, 0];
      for await (const { what: work } of pendingOf(client, config, runId, ['rollout'])) {
        if (work === 'awaitAgent') agents += 1;
        if (work === turn) turns += 1;
      }
      if (turns > 0 && stopped) return true;
      stopped = agents > 0;
      process.kill(policy, stopped ? 'SIGSTOP' : 'SIGCONT');
      return false;
    }, limitMs);
    console.log(`${what}, at ${new Date().toISOString()}`);
    const end = await begin().finally(() => process.kill(policy, 'SIGCONT'));
    await end?.();
  }

  async function deletePods(): Promise<Fault> {
    const { items } = await core.listNamespacedPod({ namespace });
    assert.ok(items.length > 0);
    const deleted = await Promise.all(items.map(({ metadata }) => deletePod(metadata?.name ?? '')));
    assert.ok(deleted.includes(true));
    return undefined;
  }

  /** Returns false if the Pod has gone meanwhile. */
  async function deletePod(name: string): Promise<boolean> {
    try {
      await core.deleteNamespacedPod({ namespace, name });
      return true;
    } catch (error) {
      if (apiStatus(error) === 404) return false;
      throw error;
    }
  }

  async function killHost(): Promise<Fault> {
    const host = partOf(stack.parts, 'host');
    await host.kill();
    return () => host.untilBack();
  }

  async function stopComponent(name: string): Promise<Fault> {
    await signalComponent(name, 'STOP');
    return () => pause(stoppedMs).finally(() => signalComponent(name, 'CONT'));
  }

  async function loseCluster(): Promise<Fault> {
    await takeDown();
    return async () => {
      await bringUp();
      await createTestNamespace(namespace);
    };
  }

  it('completes, and every rollout has one outcome, which no fault decided', () => {
    assert.equal(status.phase, 'done');
    assert.equal(status.step, request.steps);
    assert.equal(rollouts.length, status.rolloutsStarted);
    for (const { outcome, reward, stop, verdict, trace, workflowId, failure } of rollouts) {
      assert.equal(outcome, 'scored', `${workflowId}: ${JSON.stringify(failure)}`);
      assert.equal(verdict?.kind, 'graded', `${workflowId}: ${JSON.stringify(verdict)}`);
      assert.equal(reward, verdict.value, workflowId);
      assert.ok(stop !== 'crashed' && stop !== 'deadline' && stop !== 'killed', `${workflowId}: ${stop}`);
      assert.ok(trace !== null && trace.engineFailures === 0 && trace.turns > 0, workflowId);
    }
  });

  it('continued in other Pods where some were lost', () => {
    assert.ok(rollouts.some(({ epochs }) => epochs > 1));
  });

  it('leaves no Pod behind', async () => {
    await until(async () => (await core.listNamespacedPod({ namespace })).items.length === 0, limitMs);
  });
});
