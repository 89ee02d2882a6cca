import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Client } from '@temporalio/client';
import { isRunning, processIdentity } from '../../infra/process/process-identity.mjs';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { SandboxKind } from '../../infra/sandbox/sandbox.ts';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { openStackId } from '../../infra/stack.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { connectClient, plainTarget } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { openJournal } from '../../infra/trainer/journal.ts';
import type { PartKind } from '../../workers/up/part.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { resumeSignal } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import { createFileStore } from '../helpers/store/file-store.ts';
import { createNamespace } from '../helpers/temporal/production/namespace.ts';
import type { ProductionServer } from '../helpers/temporal/production/server.ts';
import { until } from '../helpers/until.ts';
import { type HeldRun, holdRun, noStep } from './held-run.ts';
import { busyIn, busyWith, type Pending, pendingOf } from './pending.ts';
import { digestsOf, receivedBy } from './received.ts';
import { assertReplaysIdentically } from './replay-batches.ts';
import { rolloutResults } from './rollout-results.ts';
import { partOf, serversOf, type Victim } from './victims.ts';

const order: readonly PartKind[] = ['host', 'gateway', 'control', 'policy', 'temporal', 'trainer'];

export interface KillOptions {
  /** The Temporal server of the stack. Default: its own. */
  readonly server?: () => Promise<ProductionServer>;
  /** The parts that are killed before the policy server is, in this order. Default: every part. TEMPER_TEST_KILLS=all: every part. */
  readonly parts?: readonly PartKind[];
  /** Leaves out what no kind of sandbox changes: an update that is lost with the policy server, and the replay of the batches. */
  readonly sandboxesAlone?: boolean;
}

const checkpointEvery = 3;
/** A step for each part that is killed, and one for the policy server after a step that no checkpoint follows. */
const stepsForAll = 8;
const runId = 'killed';
const namespace = 'kills';
const requestIn = (sandbox: SandboxKind, steps: number): RunRequest => ({
  tasks: 'generated:train/3',
  steps,
  groupsPerStep: 2,
  rolloutsPerGroup: 2,
  maxStaleness: 1,
  onStale: 'keep',
  warmUp: { steps: 20, examplesPerStep: 8, learningRate: 3e-3 },
  training: { learningRate: 1e-3, learningRateRise: 2, checkpointEvery, zeroVariance: 'keep', klCoef: 0.02 },
  budget: noStep,
  settings: { agent: 'mini', sandbox, maxTurns: 6, agentTimeoutSec: 600, sampling: { maxTokensPerTurn: 48 } },
});

const sum = (record: Readonly<Record<string, number>>): number => Object.values(record).reduce((a, b) => a + b, 0);

/** Describes a training run in which processes are killed while they are busy, and last the policy server between two checkpoints. */
export const describeKills = (sandbox: SandboxKind, steps: number, options: KillOptions = {}): void => {
  const parts = process.env.TEMPER_TEST_KILLS === 'all' ? order : (options.parts ?? order);
  const all = parts === order;
  const where = options.server === undefined ? '' : ' and PostgreSQL under the Temporal server';
  const what = all ? 'every process' : parts.join(', ');
  describe(`a training run in ${sandbox} sandboxes with ${what}${where} killed once`, () =>
    suite(sandbox, all ? Math.max(steps, stepsForAll) : steps, {
      ...options,
      parts,
      sandboxesAlone: options.sandboxesAlone === true && !all,
    }));
};

function suite(sandbox: SandboxKind, steps: number, options: KillOptions): void {
  const { server: startServer, parts = order, sandboxesAlone } = options;
  const request = requestIn(sandbox, steps);
  let home: string;
  let config: Config;
  let stack: RunningStack;
  let production: ProductionServer | undefined;
  let status: RunStatus;
  let rollouts: readonly RolloutResult[];
  /** The step whose update was lost with the policy server; 1 if none was. */
  let lost = 1;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-kills-'));
    production = await startServer?.();
    const target = production && plainTarget(production.address, namespace);
    if (target !== undefined) await createNamespace(target);
    const ports = { temporal: await freePort(), ui: await freePort(), policy: await freePort() };
    config = readConfig({
      ...process.env,
      TEMPORAL_ADDRESS: target?.address,
      TEMPORAL_NAMESPACE: target?.namespace,
      TEMPER_HOME: home,
      TEMPER_SANDBOX: sandbox,
      // Local sandboxes have sockets; in Docker a killed host worker takes the channels of its agents with it.
      TEMPER_CHANNEL: 'stream',
      // Each update takes several requests, so that a kill can come between them.
      TEMPER_TRAINER_REQUEST_TOKENS: '300',
      TEMPER_HOST: `kills-${sandbox}`,
      TEMPER_TEMPORAL_PORT: String(ports.temporal),
      TEMPER_UI_PORT: String(ports.ui),
      TEMPER_POLICY_PORT: String(ports.policy),
    });
    stack = await startStack({ config, progress: (line) => console.log(line) }, AbortSignal.timeout(300_000));
    const { client, close } = await connectClient(temporalTarget(config));
    await client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId: runId, args: [request] });
    const run = holdRun({ client, runId, request, policyPid: () => pidOf('policy') });
    const victims = production === undefined ? parts : [...parts, 'postgresql' as const];
    for (const part of victims) await killWhenBusy(client, run, part);
    if (!sandboxesAlone) lost = await killBetweenCheckpoints(client, run);
    await run.allowAll();
    await close();
    const again = await connectClient(temporalTarget(config));
    status = await again.client.workflow.getHandle(runId).result();
    rollouts = await rolloutResults(again.client, status.rolloutsStarted);
    await again.close();
  });
  after(async () => {
    await stack?.close();
    await production?.close();
    await rm(home, { recursive: true, force: true });
  });

  const pidOf = (part: PartKind): number | null => stack.parts().find(({ name }) => name === part)?.pid ?? null;

  const victimOf = (part: PartKind | 'postgresql'): Victim => {
    const servers = production && serversOf(production, namespace);
    return (part === 'temporal' || part === 'postgresql') && servers !== undefined
      ? servers[part]
      : partOf(stack.parts, part);
  };

  /** Finds work that waits for the part. */
  async function findBusy(client: Client, part: PartKind | 'postgresql'): Promise<Pending | undefined> {
    for await (const one of pendingOf(client, config, runId, busyIn[part])) {
      if (busyWith[part].includes(one.what)) return one;
    }
    return undefined;
  }

  /** Stops the control worker within its work, or gives it some: its tasks take milliseconds, and a look takes longer. */
  async function stopControl(client: Client): Promise<void> {
    const pid = pidOf('control');
    if (pid !== null) process.kill(pid, 'SIGSTOP');
    await client.workflow
      .getHandle(runId)
      .signal(resumeSignal, 'a reason that it has not')
      .catch(() => undefined);
  }

  function continueControl(): void {
    const pid = pidOf('control');
    if (pid !== null) process.kill(pid, 'SIGCONT');
  }

  /** Holds the next step where it needs the part; prints with what the part is busy, and kills it at that moment. */
  async function killWhenBusy(client: Client, run: HeldRun, part: PartKind | 'postgresql'): Promise<void> {
    const victim = victimOf(part);
    await (part === 'trainer' ? run.allowToUpdate() : run.allowHeld());
    for (;;) {
      const lookedAt = performance.now();
      if (part === 'control') await stopControl(client);
      const work = await findBusy(client, part);
      const pid = victim.pid();
      if (work !== undefined && pid !== null) {
        console.log(`kill -9 ${part} (pid ${pid}) during ${work.what} of ${work.workflow}`);
        await victim.kill();
        break;
      }
      if (part === 'control') continueControl();
      // A look takes the time of the server, which the work needs too.
      await pause(Math.max(20, 4 * (performance.now() - lookedAt)));
    }
    if (part !== 'policy') run.letGo();
    await victim.untilBack();
  }

  /** Kills the policy server when the last update is in no checkpoint, and returns its step. */
  async function killBetweenCheckpoints(client: Client, run: HeldRun): Promise<number> {
    while (run.allowed % checkpointEvery !== 1) await run.allow();
    const step = run.allowed;
    await run.untilMade(step);
    console.log(`step ${step} is made, and in no checkpoint`);
    await killWhenBusy(client, run, 'policy');
    return step;
  }

  it('completes, with one fate per group and one outcome per rollout', () => {
    assert.equal(status.phase, 'done');
    assert.equal(status.step, request.steps);
    assert.equal(sum(status.groups), status.groupsStarted);
    assert.equal(status.groups['in-flight'], 0);
    assert.equal(sum(status.rollouts), status.rolloutsStarted);
    assert.equal(rollouts.length, status.rolloutsStarted);
    for (const rollout of rollouts) assert.equal(rollout.outcome, 'scored', JSON.stringify(rollout.failure));
  });

  it('scores what the tests wrote, never a kill', () => {
    for (const { reward, verdict, stop, trace, workflowId } of rollouts) {
      assert.equal(verdict?.kind, 'graded', workflowId);
      assert.equal(reward, verdict.value, workflowId);
      assert.notEqual(stop, 'crashed', workflowId);
      assert.notEqual(stop, 'deadline', workflowId);
      assert.ok(trace !== null && trace.engineFailures === 0 && trace.turns > 0, workflowId);
    }
  });

  it('starts no agent twice', async () => {
    const store = createFileStore(config.paths.store);
    for (const { agentLog, workflowId, epochs } of rollouts) {
      assert.ok(agentLog);
      // After a kill during the start it is unknown whether the agent ran, and the rollout continues in another sandbox.
      assert.ok(epochs <= 2, `${workflowId} had ${epochs} sandboxes`);
      const log = new TextDecoder().decode(await store.get(agentLog.digest));
      assert.equal(log.match(/^relay: starts /gm)?.length, 1, `${workflowId}: ${log}`);
    }
  });

  it('makes each optimizer step once, by the count of the trainer itself', async () => {
    const { state } = await openJournal(createDirectory(config.home), status.runKey);
    const received = await receivedBy(config);
    const updates = Object.values(state.updates);
    assert.equal(updates.length, request.steps);
    for (const { modelId, optimSequence } of updates) {
      const made = received.filter(
        (one) => one.kind === 'optim_step' && one.modelId === modelId && one.sequence === optimSequence,
      );
      assert.equal(made.length, 1, `${modelId} ${optimSequence}`);
    }
    const model = updates.at(-1)?.modelId;
    const onModel = received.filter(({ kind, modelId }) => kind === 'optim_step' && modelId === model);
    // The last model was loaded from the checkpoint before the lost update, and made every update since then.
    assert.equal(onModel.length, updates.length - (lost - 1));
  });

  if (!sandboxesAlone) {
    it('repeats an update that was in no checkpoint when the policy server died', async () => {
      const { state } = await openJournal(createDirectory(config.home), status.runKey);
      const received = await receivedBy(config);
      const update = state.updates[lost] ?? assert.fail();
      for (const digest of digestsOf(received, update)) {
        const models = received.filter((one) => one.digest === digest).map(({ modelId }) => modelId);
        assert.ok(new Set(models).size > 1, `expected two models that received ${digest}, got ${models.join(' ')}`);
      }
    });

    it('gives byte-identical weights when its pinned batches are replayed on a fresh server', async () => {
      const { runKey } = status;
      const { training } = request;
      const requests = await assertReplaysIdentically({ config, runKey, steps, training });
      assert.ok(requests > steps, 'expected updates of several requests');
    });
  }

  it('leaves no sandbox behind, and no process once it is down', async () => {
    const id = await openStackId(config.paths, createDirectory(config.home));
    const provider =
      sandbox === 'docker'
        ? createDockerProvider({ stack: id })
        : createLocalProvider({ root: config.paths.sandboxes, stack: id });
    // A sandbox that could not be released is left to the reaper, which comes every minute and removes what it finds twice.
    await until(async () => (await provider.list(id)).length === 0, 240_000).finally(() => provider.close());
    // Processes are compared by identity, since another process may have the same pid by now.
    const processes = stack.parts().flatMap(({ pid }) => (pid === null ? [] : [processIdentity(pid)]));
    await stack.close();
    assert.deepEqual(processes.filter(isRunning), []);
  });
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
