import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { openStackId } from '../../infra/stack.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { type ClientConnection, connectClient } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import { until } from '../helpers/until.ts';
import { grownSince, type StackStates, statesOf, statesText } from './soak/states.ts';

/**
 * The time under load: one round, or longer by hand: TEMPER_TEST_SOAK_SECONDS=3600 npm test --
 * test/faults/soak.sandbox.process.test.ts
 */
const soakMs = 1000 * Number(process.env.TEMPER_TEST_SOAK_SECONDS ?? 1);
/** Rounds before the first measurement: caches fill, and code is compiled. */
const warmUpRounds = 2;
/** The time in which the stack comes to rest: clients close idle connections after a minute at the latest. */
const restMs = 180_000;
const restPollMs = 2_000;

const steps = 2;
const runRequest = (seed: number): RunRequest => ({
  tasks: 'generated:train/3',
  seed,
  steps,
  groupsPerStep: 1,
  rolloutsPerGroup: 4,
  warmUp: { steps: 5, examplesPerStep: 8, learningRate: 3e-3 },
  training: { learningRate: 1e-3, zeroVariance: 'keep', klCoef: 0.02 },
  settings: { agent: 'mini', sandbox: 'local', maxTurns: 6, sampling: { maxTokensPerTurn: 48 } },
});
const sweepRequest: SweepRequest = {
  tasks: 'generated:test/1',
  count: 4,
  concurrency: 4,
  settings: { agent: 'oracle', sandbox: 'local' },
};

describe('a stack that works for long', () => {
  let home: string;
  let config: Config;
  let stack: RunningStack;
  let connection: ClientConnection;
  let provider: SandboxProvider;
  let stackId: string;
  let rounds = 0;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-soak-'));
    const temporary = join(home, 'tmp');
    await mkdir(temporary);
    config = readConfig({
      ...process.env,
      TMPDIR: temporary,
      TEMPORAL_ADDRESS: undefined,
      TEMPER_HOME: home,
      TEMPER_SANDBOX: 'local',
      TEMPER_HOST: 'soak',
      TEMPER_TEMPORAL_PORT: String(await freePort()),
      TEMPER_UI_PORT: String(await freePort()),
      TEMPER_POLICY_PORT: String(await freePort()),
    });
    stack = await startStack({ config }, AbortSignal.timeout(300_000));
    connection = await connectClient(temporalTarget(config));
    stackId = await openStackId(config.paths, createDirectory(home));
    provider = createLocalProvider({ root: config.paths.sandboxes, stack: stackId });
  });
  after(async () => {
    await connection?.close();
    await stack?.close();
    await provider?.close();
    await rm(home, { recursive: true, force: true });
  });

  it('holds no more memory, files, processes, timers and sockets afterwards than before, and leaves nothing behind', async () => {
    for (let round = 0; round < warmUpRounds; round += 1) await work();
    await until(isIdle, restMs);
    const before = await statesOf(stack, config);
    const namesBefore = await leftFiles();
    console.log(`after ${rounds} rounds:\n${statesText(before)}`);
    const end = performance.now() + soakMs;
    while (performance.now() < end) {
      await work();
      console.log(`after ${rounds} rounds:\n${statesText(await statesOf(stack, config))}`);
    }
    await until(isIdle, restMs);
    const { states, grown } = await atRest(before);
    console.log(`at rest after ${rounds} rounds:\n${statesText(states)}`);
    assert.deepEqual(grown, []);
    assert.deepEqual(await leftFiles(), namesBefore);
    assert.deepEqual(
      stack.parts().filter(({ restarts }) => restarts > 0),
      [],
    );
  });

  /** Does a training run and an evaluation sweep beside it. */
  async function work(): Promise<void> {
    rounds += 1;
    const { workflow } = connection.client;
    const start = (type: string, workflowId: string, request: unknown) =>
      workflow.start(type, { taskQueue: controlQueue, workflowId, args: [request] });
    const run = await start('trainingRun', `run-${rounds}`, runRequest(rounds));
    const sweep = await start('evaluationSweep', `sweep-${rounds}`, sweepRequest);
    const status: RunStatus = await run.result();
    assert.deepEqual([status.phase, status.step], ['done', steps]);
    const result: SweepResult = await sweep.result();
    assert.equal(result.outcomes.scored, sweepRequest.count);
  }

  /** Whether no workflow of the rounds is open and no sandbox is left. */
  async function isIdle(): Promise<boolean> {
    const query =
      'WorkflowType IN ("trainingRun", "trainingStep", "evaluationSweep", "group", "rollout") AND ExecutionStatus="Running"';
    const { count } = await connection.client.workflow.count(query);
    return count === 0 && (await provider.list(stackId)).length === 0;
  }

  /** Waits until no part holds more than before, and returns what is larger when it did not happen in time. */
  async function atRest(before: StackStates) {
    const end = performance.now() + restMs;
    for (;;) {
      const states = await statesOf(stack, config);
      const grown = grownSince(before, states);
      if (grown.length === 0 || performance.now() > end) return { states, grown };
      // A look costs each part a full garbage collection.
      await sleep(restPollMs);
    }
  }

  /** Names what rollouts leave if they are not cleaned up: sandboxes, sockets, temporary files. */
  async function leftFiles(): Promise<readonly string[]> {
    const { sandboxes, gatewaySockets } = config.paths;
    const directories = [join(sandboxes, stackId), gatewaySockets.sessions, join(home, 'tmp')];
    const names = await Promise.all(directories.map((directory) => readdir(directory)));
    return names.flat().sort();
  }
});
