import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { pathsBelow } from '../../infra/paths.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { connectClient, plainTarget } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { openState, type StackState } from '../../workers/open-state.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { resumeSignal } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import { cliOn } from '../helpers/cli.ts';
import { type FleetHost, startFleetHost } from '../helpers/fleet/fleet-host.ts';
import { type FleetServices, fleetSettings, servicesOfHosts, writeStackKey } from '../helpers/fleet/settings.ts';
import { type S3Server, startS3Server } from '../helpers/store/s3-server.ts';
import { createNamespace } from '../helpers/temporal/production/namespace.ts';
import { type ProductionServer, startProductionServer } from '../helpers/temporal/production/server.ts';
import { until } from '../helpers/until.ts';
import { type HeldRun, holdRun, noStep } from './held-run.ts';
import { pendingOf, turn } from './pending.ts';
import { assertReplaysIdentically } from './replay-batches.ts';
import { assertNoFaultDecided, rolloutResults } from './rollout-results.ts';

const runId = 'on-a-fleet';
const namespace = 'fleet';
const limitMs = 300_000;
const deployment = 'fleet';
/** The time for which the store is away: longer than the absence after which a host counts as lost. */
const awayMs = 60_000;
/** A step for each of the four faults, and one for the second version of the control worker alone. */
const request: RunRequest = {
  tasks: 'generated:train/3',
  steps: 5,
  groupsPerStep: 2,
  rolloutsPerGroup: 3,
  maxStaleness: 1,
  onStale: 'keep',
  training: { zeroVariance: 'keep', klCoef: 0.02 },
  budget: noStep,
  settings: { agent: 'mini', sandbox: 'local', maxTurns: 6, agentTimeoutSec: 600, sampling: { maxTokensPerTurn: 48 } },
};

/**
 * Three hosts, each on a machine of its own that reaches only Temporal, the store and the engine; the control workers and
 * the trainer are elsewhere. Then a host is destroyed, the store and the database go away, and the control worker is
 * replaced by a new version.
 */
describe('a training run on a fleet that loses a host, its store and its database', () => {
  let root: string;
  let s3: S3Server;
  let temporal: ProductionServer;
  let config: Config;
  let state: StackState;
  let center: RunningStack;
  const controls: RunningStack[] = [];
  const hosts: FleetHost[] = [];
  let services: FleetServices;
  let run: HeldRun;
  let status: RunStatus;
  let rollouts: readonly RolloutResult[];
  let lost: number;
  let endedBy: string | null;
  let views: readonly string[];

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-fleet-'));
    [s3, temporal] = await Promise.all([startS3Server(), startProductionServer()]);
    const target = plainTarget(temporal.address, namespace);
    await createNamespace(target);
    const { address } = temporal;
    services = { root, s3, place: s3.place(), temporal: { address, namespace }, policyPort: await freePort() };
    await writeStackKey(services);
    config = readConfig(settings('center'));
    state = await openState(config);
    center = await startStack({ config, parts: ['policy', 'trainer'] }, AbortSignal.timeout(limitMs));
    const { client, close } = await connectClient(target);
    await startControl('control-a');
    await makeCurrent(client, 'control-a');
    const homes = ['fleet-1', 'fleet-2', 'fleet-3'].map((name) => join(root, name));
    for (const home of homes) await mkdir(home);
    hosts.push(...(await Promise.all(homes.map((home) => startHost(home, homes)))));
    views = await Promise.all(hosts.map(viewOf));
    await client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId: runId, args: [request] });
    run = holdRun({ client, runId, request, policyPid });
    await loseHost(client);
    await loseStore(client);
    await loseDatabase(client);
    await replaceControl(client);
    await run.allowAll();
    status = await client.workflow.getHandle(runId).result();
    endedBy = await versionOfRun(client);
    rollouts = await rolloutResults(client, status.rolloutsStarted);
    await close();
  });
  after(async () => {
    for (const host of hosts) await host.stop();
    for (const stack of [...controls, ...(center === undefined ? [] : [center])]) await stack.close();
    await temporal?.close();
    await s3?.close();
    await rm(root, { recursive: true, force: true });
  });

  const settings = (home: string): Record<string, string> => ({
    ...fleetSettings(services, home),
    TEMPER_SANDBOX: 'local',
    TEMPER_CAPACITY: '2',
  });

  async function startControl(home: string): Promise<RunningStack> {
    const version = { TEMPER_DEPLOYMENT: deployment, TEMPER_BUILD_ID: home };
    const own = readConfig({ ...settings(home), ...version });
    const stack = await startStack({ config: own, parts: ['control'] }, AbortSignal.timeout(limitMs));
    controls.push(stack);
    return stack;
  }

  const startHost = (home: string, homes: readonly string[]): Promise<FleetHost> =>
    startFleetHost({
      name: basename(home),
      home,
      hidden: [join(root, 'center'), join(root, 'control-a'), ...homes.filter((other) => other !== home)],
      env: settings(basename(home)),
      services: servicesOfHosts,
    });

  /** Lists what a host sees of all homes, and what it reaches beside the services. */
  async function viewOf(host: FleetHost): Promise<string> {
    const homes = ['center', 'control-a', 'fleet-1', 'fleet-2', 'fleet-3'].map((home) => join(root, home));
    const others = `$gateway/${temporal.postgresql.port} 127.0.0.1/${services.policyPort} 192.0.2.1/80`;
    const connections = `for to in ${others}; do (: <>/dev/tcp/$to) && echo "reached $to"; done`;
    return await host.run(`find ${homes.join(' ')} -maxdepth 1 -name up.json; ${connections}`);
  }

  const policyPid = (): number | null => center.parts().find(({ name }) => name === 'policy')?.pid ?? null;

  /** Waits until agents of a step that is held wait for a turn on each host, so that the next fault meets them. */
  async function untilAtWork(client: Client): Promise<void> {
    const works = async ({ name }: FleetHost): Promise<boolean> => {
      const onHost = readConfig(settings(name));
      for await (const { what } of pendingOf(client, onHost, runId, ['rollout'])) if (what === turn) return true;
      return false;
    };
    await run.allowHeld();
    await until(async () => (await Promise.all(hosts.map(works))).every(Boolean), limitMs);
  }

  /** Destroys a host while agents work on each, and declares it lost. */
  async function loseHost(client: Client): Promise<void> {
    await untilAtWork(client);
    const [host = assert.fail()] = hosts.splice(0, 1);
    await host.destroy();
    run.letGo();
    const cli = cliOn(join(root, 'center'), { address: temporal.address, namespace }, settings('center'));
    const { code, stdout, stderr } = await cli.run('host', 'forget', host.name, '--yes', '--force', '--json');
    assert.equal(code, 0, stderr);
    lost = JSON.parse(stdout).rollouts;
    console.log(`destroyed ${host.name}, which had ${lost} rollouts`);
  }

  async function loseStore(client: Client): Promise<void> {
    await untilAtWork(client);
    await s3.kill();
    run.letGo();
    console.log('the store is away');
    await pause(awayMs);
    await s3.start();
  }

  async function loseDatabase(client: Client): Promise<void> {
    await untilAtWork(client);
    await temporal.postgresql.crash();
    run.letGo();
    console.log('the database crashed');
    await temporal.postgresql.start();
  }

  /** Makes a version of the control worker the current one. The server may not know yet that it polls. */
  async function makeCurrent(client: Client, buildId: string): Promise<void> {
    const current = { namespace, deploymentName: deployment, buildId };
    const set = () => client.workflowService.setWorkerDeploymentCurrentVersion(current);
    await until(
      () =>
        set().then(
          () => true,
          () => false,
        ),
      limitMs,
    );
  }

  /** Deploys another version while agents work, and ends the first one when all that it began has ended or moved on. */
  async function replaceControl(client: Client): Promise<void> {
    const [first = assert.fail()] = controls;
    await untilAtWork(client);
    await startControl('control-b');
    await makeCurrent(client, 'control-b');
    run.letGo();
    await run.untilMade(run.allowed);
    // A list of what is open may lack what has just begun; the run and its steps tell that nothing has.
    await until(async () => (await movedOn(client)) === 'control-b', limitMs);
    const open = `ExecutionStatus="Running" AND TemporalWorkerDeploymentVersion="${deployment}:control-a"`;
    await until(async () => (await client.workflow.count(open)).count === 0, limitMs);
    await first.close();
    console.log('another version of the control worker took over');
  }

  /** Makes the run look around, which it does when something changes; returns the version that it has. */
  async function movedOn(client: Client): Promise<string | null> {
    await client.workflow.getHandle(runId).signal(resumeSignal);
    return versionOfRun(client);
  }

  async function versionOfRun(client: Client): Promise<string | null> {
    const { raw } = await client.workflow.getHandle(runId).describe();
    return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId ?? null;
  }

  it('runs each host where it reaches the services alone, and sees no other disk', () => {
    assert.deepEqual(
      views,
      ['fleet-1', 'fleet-2', 'fleet-3'].map((name) => `${join(root, name, 'up.json')}\n`),
    );
  });

  it('completes, and every rollout has one outcome, which no fault decided', () => {
    assert.equal(status.phase, 'done');
    assert.equal(status.step, request.steps);
    assert.equal(sum(status.rollouts), status.rolloutsStarted);
    assert.equal(rollouts.length, status.rolloutsStarted);
    assertNoFaultDecided(rollouts);
  });

  it('moves on to the new version of the control worker', () => {
    assert.equal(endedBy, 'control-b');
  });

  it('repeats the work of the lost host alone', () => {
    assert.ok(lost > 0);
    const repeated = rollouts.filter(({ epochs }) => epochs > 1);
    assert.ok(repeated.length <= lost, `${repeated.length} rollouts began again, ${lost} were on the lost host`);
  });

  it('leaves no sandbox behind', async () => {
    for (const { home } of hosts) {
      const provider = createLocalProvider({ root: pathsBelow(home).sandboxes, stack: state.stack });
      await until(async () => (await provider.list(state.stack)).length === 0, limitMs).finally(() => provider.close());
    }
  });

  it('gives byte-identical weights when its pinned batches are replayed on a fresh server', async () => {
    const { training } = request;
    const { step: steps } = status;
    await assertReplaysIdentically({ config, objects: state.objects, runKey: status.runKey, steps, training });
  });
});

const sum = (record: Readonly<Record<string, number>>): number => Object.values(record).reduce((a, b) => a + b, 0);
