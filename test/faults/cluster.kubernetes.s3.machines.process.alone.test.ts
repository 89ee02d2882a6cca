import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { V1Pod } from '@kubernetes/client-node';
import { apiStatus } from '../../infra/sandbox/kubernetes/answers.ts';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { openState, type StackState } from '../../workers/open-state.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { maxEpochs } from '../../workflows/activity-options.ts';
import { rolloutStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import { cliOn } from '../helpers/cli.ts';
import { type FleetHost, startFleetHost } from '../helpers/fleet/fleet-host.ts';
import { type FleetServices, fleetSettings, servicesOfHosts, writeStackKey } from '../helpers/fleet/settings.ts';
import { bringUp, programsImage, signalComponent, takeDown } from '../helpers/kubernetes/cluster.ts';
import { createTestNamespace, openTestCluster, testNamespace } from '../helpers/kubernetes/namespace.ts';
import { type S3Server, startS3Server } from '../helpers/store/s3-server.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';
import { until } from '../helpers/until.ts';
import { type HeldRun, holdRun, noStep } from './held-run.ts';
import { pendingOf, turn } from './pending.ts';
import { assertReplaysIdentically } from './replay-batches.ts';
import { assertNoFaultDecided, rolloutResults } from './rollout-results.ts';

const runId = 'on-a-cluster';
/** Longer than the four minutes after which an activity counts as lost that its worker never got. */
const limitMs = 600_000;
/** The time for which the kubelet and the API server are stopped: a minute, or in CI as long as a request of the host waits. */
const stoppedMs = Number(process.env.TEMPER_TEST_STOPPED_SECONDS ?? (process.env.CI === 'true' ? 35 : 60)) * 1_000;
/** A step for each fault. */
const request: RunRequest = {
  tasks: 'generated:train/3',
  steps: 6,
  groupsPerStep: 2,
  rolloutsPerGroup: 2,
  maxStaleness: 1,
  onStale: 'keep',
  budget: noStep,
  training: { zeroVariance: 'keep', klCoef: 0.02 },
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

/**
 * Two hosts, each on a machine of its own that reaches only Temporal, the store, the engine and the cluster. Each fault comes
 * while an agent waits for a turn, so that it meets it at work.
 */
describe('a training run of a fleet in Pods whose cluster fails in every way, and that loses a host', async () => {
  const { core } = openTestCluster();
  const namespace = await testNamespace('run');
  let root: string;
  let s3: S3Server;
  let temporal: TestServer;
  let services: FleetServices;
  let config: Config;
  let state: StackState;
  let center: RunningStack;
  let run: HeldRun;
  const hosts: FleetHost[] = [];
  let destroyed: string;
  let lost: number;
  let status: RunStatus;
  let rollouts: readonly RolloutResult[];

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-cluster-'));
    [s3, temporal] = await Promise.all([startS3Server(), startTestServer()]);
    services = { root, s3, place: s3.place(), temporal, policyPort: await freePort() };
    await writeStackKey(services);
    config = readConfig(settings('center'));
    state = await openState(config);
    center = await startStack({ config, parts: ['policy', 'trainer', 'control'] }, AbortSignal.timeout(limitMs));
    const homes = ['cluster-1', 'cluster-2'].map((name) => join(root, name));
    for (const home of homes) await mkdir(home);
    hosts.push(...(await Promise.all(homes.map((home) => startHost(home, homes)))));
    const { client } = temporal;
    await client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId: runId, args: [request] });
    run = holdRun({ client, runId, request, policyPid });
    await whileAtWork('its Pods were deleted', deletePods);
    await whileAtWork('a host worker was killed', killWorker);
    await whileAtWork('the cluster was lost, and an empty one came up', loseCluster);
    await whileAtWork('a host was destroyed', destroyHost);
    await whileAtWork('the API server was stopped for a while', () => stopComponent('kube-apiserver'));
    await whileAtWork('the kubelet was stopped for a while', () => stopComponent('kubelet'));
    await run.allowAll();
    status = await client.workflow.getHandle(runId).result();
    rollouts = await rolloutResults(client, status.rolloutsStarted);
  });
  after(async () => {
    for (const host of hosts) await host.stop();
    await center?.close();
    await temporal?.close();
    await s3?.close();
    await rm(root, { recursive: true, force: true });
  });

  const settings = (home: string): Record<string, string> => ({
    ...fleetSettings(services, home),
    TEMPER_SANDBOX: 'kubernetes',
    TEMPER_KUBERNETES_NAMESPACE: namespace,
    TEMPER_KUBERNETES_PROGRAMS: programsImage,
    TEMPER_KUBERNETES_REQUESTS: '0.01',
    TEMPER_CAPACITY: '2',
  });

  const startHost = (home: string, homes: readonly string[]): Promise<FleetHost> =>
    startFleetHost({
      name: basename(home),
      home,
      hidden: [join(root, 'center'), ...homes.filter((other) => other !== home)],
      env: settings(basename(home)),
      services: servicesOfHosts,
      kubeconfig: process.env.KUBECONFIG ?? assert.fail('expected a cluster'),
    });

  const policyPid = (): number | null => center.parts().find(({ name }) => name === 'policy')?.pid ?? null;

  /**
   * Begins a fault on a host while an agent of a step that is held waits for a turn there. The second part of the fault comes when
   * the agent has its turn or waits for the cluster.
   */
  async function whileAtWork(what: string, begin: (host: FleetHost) => Promise<Fault>): Promise<void> {
    await until(async () => {
      await assertRunning(what);
      return (await epochs()).every((epoch) => epoch < maxEpochs);
    }, limitMs);
    await run.allowHeld();
    const host = await until(async () => {
      await assertRunning(what);
      for (const one of hosts) if (await hasTurn(one)) return one;
      return null;
    }, limitMs);
    console.log(`${what}, at ${new Date().toISOString()}`);
    const end = await begin(host).finally(() => run.letGo());
    await end?.();
  }

  /** Whether a turn of an agent on this host is in progress. */
  async function hasTurn({ name }: FleetHost): Promise<boolean> {
    const onHost = readConfig(settings(name));
    for await (const { what } of pendingOf(temporal.client, onHost, runId, ['rollout'])) if (what === turn) return true;
    return false;
  }

  async function assertRunning(what: string): Promise<void> {
    const { status: now } = await temporal.client.workflow.getHandle(runId).describe();
    assert.equal(now.name, 'RUNNING', `the run ended before ${what}`);
  }

  /** Lists the epochs of the rollouts in progress. A rollout that has no epoch left must not meet another fault. */
  async function epochs(): Promise<readonly number[]> {
    const { workflow } = temporal.client;
    const found: number[] = [];
    for await (const { workflowId } of workflow.list({
      query: 'WorkflowType="rollout" AND ExecutionStatus="Running"',
    })) {
      found.push((await workflow.getHandle(workflowId).query(rolloutStatusQuery)).epoch);
    }
    return found;
  }

  const pods = async (): Promise<readonly V1Pod[]> => (await core.listNamespacedPod({ namespace })).items;

  async function deletePods(): Promise<Fault> {
    const found = await pods();
    assert.ok(found.length > 0);
    const deleted = await Promise.all(found.map(({ metadata }) => deletePod(metadata?.name ?? '')));
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

  async function killWorker(host: FleetHost): Promise<Fault> {
    const killed = (await host.workerPid()) ?? assert.fail('expected a host worker');
    process.kill(killed, 'SIGKILL');
    return () => until(async () => ![killed, null].includes(await host.workerPid()), limitMs);
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

  /** Destroys a host with its disk, on which its journals are, and declares it lost. */
  async function destroyHost(host: FleetHost): Promise<Fault> {
    destroyed = host.name;
    hosts.splice(hosts.indexOf(host), 1);
    await host.destroy();
    return async () => {
      const cli = cliOn(config.home, temporal, settings('center'));
      const { code, stdout, stderr } = await cli.run('host', 'forget', destroyed, '--yes', '--force', '--json');
      assert.equal(code, 0, stderr);
      lost = JSON.parse(stdout).rollouts;
    };
  }

  /** Whether an epoch of the rollout ended because its host was destroyed. */
  const endedWithHost = ({ notes = [] }: RolloutResult): boolean =>
    notes.some((note) => note.endsWith(` ended: host ${destroyed} was declared lost`));

  it('completes, and every rollout has one outcome, which no fault decided', () => {
    assert.equal(status.phase, 'done');
    assert.equal(status.step, request.steps);
    assert.equal(rollouts.length, status.rolloutsStarted);
    assert.equal(status.rollouts.scored, status.rolloutsStarted);
    assertNoFaultDecided(rollouts);
  });

  it('continued in other Pods where some were lost', () => {
    assert.ok(rollouts.some((rollout) => rollout.epochs > 1 && !endedWithHost(rollout)));
  });

  it('begins the work of the destroyed host again, and says so', () => {
    const begunAgain = rollouts.filter(endedWithHost);
    assert.ok(begunAgain.length > 0 && begunAgain.length <= lost, `${begunAgain.length} of ${lost} began again`);
    for (const { epochs, adoptions, workflowId } of begunAgain) {
      assert.ok(epochs > 1 && adoptions === undefined, workflowId);
    }
  });

  it('gives byte-identical weights when its pinned batches are replayed on a fresh server', async () => {
    const { training } = request;
    const { step: steps } = status;
    await assertReplaysIdentically({ config, objects: state.objects, runKey: status.runKey, steps, training });
  });

  it('leaves no Pod behind, of the destroyed host neither', async () => {
    await until(async () => (await pods()).length === 0, limitMs);
  });
});
