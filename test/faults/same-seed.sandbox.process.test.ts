import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { connectClient } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { openJournal } from '../../infra/trainer/journal.ts';
import type { PartKind } from '../../workers/up/part.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import type { Batch } from '../../workflows/contracts/batch.ts';
import type { GroupReport } from '../../workflows/contracts/group.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus, StepResult } from '../../workflows/contracts/run.ts';
import type { Trace } from '../../workflows/contracts/trace.ts';
import { createFileStore, createRecords } from '../helpers/store/file-store.ts';
import { until } from '../helpers/until.ts';
import { type HeldRun, holdRun, noStep } from './held-run.ts';
import { pendingOf, turn } from './pending.ts';
import { lastChecksum, receivedBy } from './received.ts';
import { rolloutResults } from './rollout-results.ts';
import { partOf } from './victims.ts';

const steps = 2;
const groupsPerStep = 2;
const rolloutsPerGroup = 4;
const rolloutsPerStep = groupsPerStep * rolloutsPerGroup;
const request: RunRequest = {
  tasks: 'generated:train/11',
  seed: 11,
  steps,
  groupsPerStep,
  rolloutsPerGroup,
  maxStaleness: 0,
  budget: noStep,
  warmUp: { steps: 180, examplesPerStep: 6, learningRate: 3e-3, learningRateFall: 60, rightShare: 0.6 },
  training: { learningRate: 1e-3, zeroVariance: 'keep', klCoef: 0.02 },
  settings: {
    agent: 'mini',
    sandbox: 'local',
    maxTurns: 4,
    agentTimeoutSec: 600,
    sampling: { maxTokensPerTurn: 48 },
  },
};
/** The processes that are killed in a step while all of its agents wait for a turn, and while its update waits for an answer. */
interface Kills {
  readonly inTurns: readonly PartKind[];
  readonly inUpdate?: readonly PartKind[];
}

/** The kills in each step of a run. The policy server is the trainer, whose worker is killed as well. */
const killed: Readonly<Record<string, readonly Kills[]>> = {
  one: [{ inTurns: ['gateway', 'temporal'] }, { inTurns: ['policy'] }],
  two: [{ inTurns: ['policy', 'gateway'] }, { inTurns: ['host', 'control'], inUpdate: ['trainer', 'policy'] }],
};

/** All that a run has sampled and learned, without ids, times, and how often an engine interrupted a turn. */
interface Account {
  readonly groups: readonly { readonly task: string; readonly rollouts: readonly unknown[] }[];
  readonly batches: readonly unknown[];
  /** The checksum of the weights after each update. */
  readonly weights: readonly string[];
}

describe('two runs with one seed whose processes are killed at other moments', () => {
  let home: string;
  let config: Config;
  let stack: RunningStack;
  let one: Account;
  let two: Account;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-same-seed-'));
    config = readConfig({
      ...process.env,
      TEMPORAL_ADDRESS: undefined,
      TEMPER_HOME: home,
      TEMPER_SANDBOX: 'local',
      TEMPER_CAPACITY: String(rolloutsPerStep),
      TEMPER_TEMPORAL_PORT: String(await freePort()),
      TEMPER_UI_PORT: String(await freePort()),
      TEMPER_POLICY_PORT: String(await freePort()),
    });
    stack = await startStack({ config, progress: (line) => console.log(line) }, AbortSignal.timeout(300_000));
    one = await accountOf(await train('one'));
    two = await accountOf(await train('two'));
  });
  after(async () => {
    await stack?.close();
    await rm(home, { recursive: true, force: true });
  });

  /** Makes a run with its kills. */
  async function train(runId: string): Promise<RunStatus> {
    const { client, close } = await connectClient(temporalTarget(config));
    try {
      await client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId: runId, args: [request] });
      const policyPid = () => stack.parts().find(({ name }) => name === 'policy')?.pid ?? null;
      const run = holdRun({ client, runId, request, policyPid });
      const untilAllWait = async (): Promise<void> => {
        await until(async () => {
          let waiting = 0;
          for await (const { what } of pendingOf(client, config, runId, ['rollout'])) if (what === turn) waiting += 1;
          return waiting === rolloutsPerStep;
        }, 300_000);
      };
      const untilUpdate = async (): Promise<void> => {
        await until(async () => {
          for await (const { what } of pendingOf(client, config, runId, ['trainingStep']))
            if (what === 'update') return true;
          return false;
        }, 300_000);
      };
      for (const kills of killed[runId] ?? []) await killInStep(run, kills, { untilAllWait, untilUpdate });
      await run.allowAll();
      return await client.workflow.getHandle(runId).result();
    } finally {
      await close();
    }
  }

  async function killInStep(
    run: HeldRun,
    { inTurns, inUpdate = [] }: Kills,
    { untilAllWait, untilUpdate }: Readonly<Record<'untilAllWait' | 'untilUpdate', () => Promise<void>>>,
  ): Promise<void> {
    await run.untilMade(run.allowed);
    await run.allowHeld();
    await untilAllWait();
    await killAll(inTurns);
    if (inUpdate.length > 0) {
      await run.holdUpdate();
      await untilUpdate();
      await killAll(inUpdate);
    }
    run.letGo();
  }

  async function killAll(parts: readonly PartKind[]): Promise<void> {
    for (const part of parts) {
      const victim = partOf(stack.parts, part);
      console.log(`kill -9 ${part} (pid ${victim.pid()})`);
      await victim.kill();
      await victim.untilBack();
    }
  }

  async function accountOf({ runKey, groupsStarted }: RunStatus): Promise<Account> {
    const store = createFileStore(config.paths.store);
    const records = createRecords(config.paths.runs);
    const read = <Value>(name: string) => records.read(runKey, name) as Promise<Value>;
    const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
    const groups = numbers(groupsStarted).map(async (index) => {
      const { task, rollouts } = await read<GroupReport>(`group-${index}`);
      const told = rollouts.map(async ({ outcome, reward, stop, trace }) => {
        const { turns, segments } = (await store.getJson(trace?.trace.digest ?? '')) as Trace;
        const same = turns.map((one) => ({ ...one, startedAt: 0, endedAt: 0, aborts: 0 }));
        return { outcome, reward, stop, segments, turns: same };
      });
      return { task, rollouts: await Promise.all(told) };
    });
    const batches = numbers(steps).map(async (index) => {
      const { result } = await read<{ readonly result: StepResult }>(`step-${index + 1}`);
      const { runKey: _, rollouts, ...batch } = (await store.getJson(result.batch?.digest ?? '')) as Batch;
      return { ...batch, rollouts: rollouts.map(({ group, reward }) => ({ group, reward })) };
    });
    const { updates } = await (await openJournal(createDirectory(config.home), runKey)).steps(1, steps);
    const received = await receivedBy(config);
    return {
      groups: await Promise.all(groups),
      batches: await Promise.all(batches),
      weights: numbers(steps).map((index) => lastChecksum(received, updates[index + 1])),
    };
  }

  it('lose no sandbox', async () => {
    const { client, close } = await connectClient(temporalTarget(config));
    const rollouts = await rolloutResults(client, 2 * steps * rolloutsPerStep).finally(close);
    for (const { epochs, workflowId } of rollouts) assert.equal(epochs, 1, workflowId);
  });

  it('sample the same tokens and get the same rewards, though the rollouts of a group differ', () => {
    assert.deepEqual(one.groups, two.groups);
    assert.equal(one.groups.length, steps * groupsPerStep);
    const differ = ({ rollouts }: (typeof one.groups)[number]) =>
      new Set(rollouts.map((one) => JSON.stringify(one))).size > 1;
    assert.ok(one.groups.some(differ));
  });

  it('train on the same batches', () => {
    assert.deepEqual(one.batches, two.batches);
  });

  it('learn the same weights, which every update changes', () => {
    assert.deepEqual(one.weights, two.weights);
    assert.equal(new Set(one.weights).size, steps);
  });
});
