import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { gather } from '../../activities/control/batch.ts';
import { isRunning, processIdentity } from '../../infra/process/process-identity.mjs';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { openStackId } from '../../infra/stack.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { connectClient, plainTarget } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { openJournal } from '../../infra/trainer/journal.ts';
import { demoRun } from '../../workers/cli/commands/demo/recipe.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { summariseGroup } from '../../workflows/algorithms/group-report.ts';
import { staleness } from '../../workflows/algorithms/staleness.ts';
import type { Batch } from '../../workflows/contracts/batch.ts';
import type { GroupReport } from '../../workflows/contracts/group.ts';
import { runStatusQuery } from '../../workflows/contracts/messages.ts';
import type { Fate } from '../../workflows/contracts/outcome.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeResult } from '../../workflows/contracts/regrade.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { type RunRequest, type RunStatus, type StepResult, training } from '../../workflows/contracts/run.ts';
import { createFileStore, createRecords } from '../helpers/store/file-store.ts';
import { createNamespace } from '../helpers/temporal/production/namespace.ts';
import { type ProductionServer, startProductionServer } from '../helpers/temporal/production/server.ts';
import { until } from '../helpers/until.ts';
import { hasBegun, holdRun } from './held-run.ts';
import { type Kill, killAtRandom } from './random-kills.ts';
import { receivedBy } from './received.ts';
import { assertReplaysIdentically } from './replay-batches.ts';
import { rolloutResults } from './rollout-results.ts';
import { serversOf } from './victims.ts';

/** The number of rollouts that the run trains on. The whole proof by hand has 512; the README of this folder says how. */
const rolloutsWanted = Number(process.env.TEMPER_TEST_ROLLOUTS ?? 24);
const seed = process.env.TEMPER_TEST_SEED ?? String(Date.now() % 1_000_000);
/** Whether the Temporal server is one on PostgreSQL, which is killed as well, by hand. Default: the dev server. */
const onPostgres = process.env.TEMPER_TEST_SERVER === 'postgres';
const isWhole = rolloutsWanted >= 512;
const pace = isWhole ? { meanGapMs: 10_000, rounds: Number.POSITIVE_INFINITY } : { meanGapMs: 1_000, rounds: 1 };

const runId = 'killed-at-random';
const namespace = 'random-kills';
const recipe = demoRun(1);
const groupsPerStep = isWhole ? 8 : 3;
const rolloutsPerGroup = 4;
const steps = Math.ceil(rolloutsWanted / (groupsPerStep * rolloutsPerGroup));
const checkpointEvery = 3;
const request: RunRequest = {
  ...recipe,
  steps,
  groupsPerStep,
  rolloutsPerGroup,
  maxStaleness: 1,
  onStale: 'cancel',
  settings: { ...recipe.settings, sandbox: 'local' },
  training: { ...recipe.training, checkpointEvery },
  warmUp: { steps: isWhole ? 300 : 40, examplesPerStep: 8, learningRate: 3e-3 },
  // Its last step begins when every process was killed, so that it cannot end before.
  ...(!isWhole && { budget: { rollouts: Math.max(1, (steps - 1) * groupsPerStep * rolloutsPerGroup) } }),
};

/** The record of a step, as `recordStep` writes it. */
interface StepRecord {
  readonly result: StepResult;
  readonly trained: readonly number[];
  readonly zeroVariance: readonly number[];
  readonly dropped: readonly (readonly [number, Fate])[];
}

const sum = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((a, b) => a + b, 0);

describe(`a training run whose processes are killed at random moments (TEMPER_TEST_SEED=${seed})`, () => {
  let home: string;
  let config: Config;
  let stack: RunningStack;
  let production: ProductionServer | undefined;
  let status: RunStatus;
  let rollouts: readonly RolloutResult[];
  let kills: readonly Kill[];
  let groups: ReadonlyMap<number, GroupReport>;
  let records: readonly StepRecord[];

  before(async () => {
    console.log(`TEMPER_TEST_SEED=${seed} TEMPER_TEST_ROLLOUTS=${rolloutsWanted}`);
    home = await mkdtemp(join(tmpdir(), 'temper-random-kills-'));
    production = onPostgres ? await startProductionServer() : undefined;
    const target = production && plainTarget(production.address, namespace);
    if (target !== undefined) await createNamespace(target);
    config = readConfig({
      ...process.env,
      TEMPORAL_ADDRESS: target?.address,
      TEMPORAL_NAMESPACE: target?.namespace,
      TEMPER_HOME: home,
      TEMPER_SANDBOX: 'local',
      TEMPER_HOST: 'random-kills',
      TEMPER_TRAINER_REQUEST_TOKENS: '2000',
      TEMPER_TEMPORAL_PORT: String(await freePort()),
      TEMPER_UI_PORT: String(await freePort()),
      TEMPER_POLICY_PORT: String(await freePort()),
    });
    stack = await startStack({ config, progress: (line) => console.log(line) }, AbortSignal.timeout(300_000));
    await withClient((client) =>
      client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId: runId, args: [request] }),
    );
    // The first kills come while the warm-up is made.
    await until(() => withClient((client) => hasBegun(client, runId)).catch(() => false), 600_000);
    const startedAt = performance.now();
    const ended = new AbortController();
    const killing = killAtRandom(
      { seed, ...pace, parts: stack.parts, servers: production && serversOf(production, namespace) },
      ended.signal,
    );
    if (!isWhole) {
      await killing;
      const allow = (client: Client) => holdRun({ client, runId, request, policyPid: () => null }).allowAll();
      await until(
        () =>
          withClient(allow).then(
            () => true,
            () => false,
          ),
        600_000,
      );
    }
    await untilRunEnds().finally(() => ended.abort());
    kills = await killing;
    await until(() => stack.parts().every(({ state }) => state === 'running'), 240_000);
    await withClient(async (client) => {
      status = await client.workflow.getHandle(runId).result();
      rollouts = await rolloutResults(client, status.rolloutsStarted);
    });
    const stored = createRecords(config.paths.runs);
    const read = <Value>(name: string) => stored.read(status.runKey, name) as Promise<Value>;
    const indexes = Array.from({ length: status.groupsStarted }, (_, index) => index);
    groups = new Map(await Promise.all(indexes.map(async (i) => [i, await read<GroupReport>(`group-${i}`)] as const)));
    records = await Promise.all(Array.from({ length: steps }, (_, index) => read<StepRecord>(`step-${index + 1}`)));
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    console.log(`${kills.length} kills in ${seconds} s; rollouts: ${JSON.stringify(status.rollouts)}`);
  });
  after(async () => {
    await stack?.close();
    await production?.close();
    await rm(home, { recursive: true, force: true });
  });

  /** Connects for one piece of work, since a connection from before a kill may be lost. */
  async function withClient<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
    const { client, close } = await connectClient(temporalTarget(config));
    return work(client).finally(close);
  }

  /**
   * Waits until the run has ended, through the restarts of the server. Fails if the run pauses itself, since it would
   * wait for ever.
   */
  async function untilRunEnds(): Promise<void> {
    for (;;) {
      const seen = await withClient(async (client) => {
        const handle = client.workflow.getHandle(runId);
        const { status: workflow } = await handle.describe();
        return workflow.name === 'RUNNING' ? await handle.query(runStatusQuery) : workflow.name;
      }).catch(() => null); // the server or the control worker is down
      if (typeof seen === 'string') return;
      assert.equal(seen?.pausedBecause ?? null, null);
      await sleep(500);
    }
  }

  it('was killed in every process', () => {
    const victims = new Set(kills.map(({ victim }) => victim));
    const servers = production === undefined ? [] : ['temporal', 'postgresql'];
    assert.equal(victims.size, stack.parts().length + 1 + servers.length, `killed only ${[...victims].join(', ')}`);
  });

  it('has as many outcomes as rollouts, none twice', () => {
    assert.equal(status.phase, 'done');
    assert.equal(status.step, steps);
    assert.ok(status.rolloutsStarted >= rolloutsWanted);
    assert.equal(status.rolloutsStarted, status.groupsStarted * rolloutsPerGroup);
    assert.equal(sum(status.rollouts), status.rolloutsStarted);
    assert.equal(sum(status.groups), status.groupsStarted);
    assert.equal(status.groups['in-flight'], 0);
    assert.equal(rollouts.length, status.rolloutsStarted);
    assert.equal(new Set(rollouts.map(({ workflowId }) => workflowId)).size, rollouts.length);
    const reported = [...groups.values()].flatMap((group) => group.rollouts);
    const end = ({ workflowId, rollout, outcome, reward }: (typeof reported)[number] | RolloutResult) =>
      [workflowId, rollout, outcome, reward].join(' ');
    assert.deepEqual(reported.map(end).sort(), rollouts.map(end).sort());
  });

  it('ends no rollout because of a kill, and as stale only what was too stale', () => {
    // The step before which a group was dropped, or in which it was trained with those of its rollouts that had been scored.
    const endedAt = new Map(
      records.flatMap(({ result: { step }, dropped, trained }) => [
        ...dropped.map(([index, fate]) => [index, { step, fate }] as const),
        ...trained.map((index) => [index, { step, fate: 'trained' }] as const),
      ]),
    );
    for (const report of groups.values()) {
      for (const { outcome, workflowId, failure } of report.rollouts) {
        if (outcome === 'scored') continue;
        assert.equal(outcome, 'stale', `${workflowId}: ${JSON.stringify(failure)}`);
        const { step, fate } = endedAt.get(report.index) ?? assert.fail(workflowId);
        const oldest = fate === 'stale' ? summariseGroup(report, status.runKey).minVersion : report.admittedVersion;
        assert.ok(staleness(step, oldest) > (request.maxStaleness ?? 0), `${workflowId}: ${fate} at step ${step}`);
      }
    }
  });

  it('scores only work that the agent itself ended, with every turn', async () => {
    const store = createFileStore(config.paths.store);
    for (const { outcome, workflowId, stop, trace, agentLog, verdict, reward } of rollouts) {
      if (outcome !== 'scored') continue;
      assert.equal(verdict?.kind, 'graded', workflowId);
      assert.equal(reward, verdict.value, workflowId);
      assert.ok(
        ['submitted', 'exited', 'turn-limit', 'context-overflow'].includes(stop ?? ''),
        `${workflowId}: ${stop}`,
      );
      assert.ok(trace !== null && trace.engineFailures === 0 && (trace.gatewayFailures ?? 0) === 0, workflowId);
      const log = new TextDecoder().decode(await store.get(agentLog?.digest ?? ''));
      assert.equal(log.match(/^relay: starts /gm)?.length, 1, `${workflowId}: ${log}`);
      assert.equal(log.match(/^assistant: /gm)?.length, trace.turns, `${workflowId}: ${log}`);
    }
  });

  it('gives every rollout the same reward again when nothing is killed', async () => {
    const result = await withClient<RegradeResult>((client) => {
      const start = { taskQueue: controlQueue, workflowId: 'undisturbed', args: [{ run: runId, concurrency: 8 }] };
      return client.workflow.execute('regrade', start);
    });
    assert.equal(result.rollouts, rollouts.length);
    assert.equal(result.states.same, status.rollouts.scored, JSON.stringify(result.states));
    assert.equal(result.states['left-out'], status.rollouts.stale);
  });

  it('trains each scored rollout of a trained group in one batch, with its own reward', async () => {
    const store = createFileStore(config.paths.store);
    const scored = new Map(rollouts.flatMap(({ rollout, reward }) => (reward === null ? [] : [[rollout, reward]])));
    const trained = records.flatMap((record) => record.trained);
    assert.equal(trained.length, status.groups.trained);
    assert.equal(new Set(trained).size, trained.length);
    const inBatches: string[] = [];
    for (const { result } of records) {
      const batch = (await store.getJson(result.batch?.digest ?? '')) as Batch;
      for (const { rollout, reward } of batch.rollouts) {
        assert.equal(reward, scored.get(rollout), rollout);
        inBatches.push(rollout);
      }
    }
    const expected = trained.flatMap((index) => groups.get(index)?.rollouts.filter(({ reward }) => reward !== null));
    assert.deepEqual(inBatches.sort(), expected.map((one) => one?.rollout ?? '').sort());
  });

  it('gathers each batch again byte by byte, which the trainer has received once', async () => {
    const dependencies = { store: createFileStore(config.paths.store), records: createRecords(config.paths.runs) };
    const journal = await openJournal(createDirectory(config.home), status.runKey);
    const { updates } = await journal.steps(1, steps);
    const received = await receivedBy(config);
    assert.equal(Object.keys(updates).length, steps);
    for (const { result, trained, zeroVariance } of records) {
      const { step, batch } = result;
      const groups = [...trained, ...zeroVariance].sort((a, b) => a - b);
      const input = { runKey: status.runKey, step, groups, dropped: [] };
      const again = await gather(dependencies, { ...input, training: training.parse(request.training ?? {}) });
      assert.equal(again.batch?.digest, batch?.digest, `step ${step}`);
      const update = updates[step];
      assert.equal(update?.batch, batch?.digest, `step ${step}`);
      const made = received.filter(
        ({ kind, modelId, sequence }) =>
          kind === 'optim_step' && modelId === update?.modelId && sequence === update.optimSequence,
      );
      assert.equal(made.length, 1, `step ${step}`);
    }
  });

  it('gives byte-identical weights when its pinned batches are replayed on a fresh server', async () => {
    const { training: settings } = request;
    await assertReplaysIdentically({ config, runKey: status.runKey, steps, training: settings });
  });

  it('leaves no sandbox behind, and no process once it is down', async () => {
    const id = await openStackId(config.paths, createDirectory(config.home));
    const provider = createLocalProvider({ root: config.paths.sandboxes, stack: id });
    // A sandbox that could not be released is left to the reaper, which comes every minute and removes what it finds twice.
    await until(async () => (await provider.list(id)).length === 0, 240_000).finally(() => provider.close());
    const processes = stack.parts().flatMap(({ pid }) => (pid === null ? [] : [processIdentity(pid)]));
    await stack.close();
    assert.deepEqual(processes.filter(isRunning), []);
  });
});
