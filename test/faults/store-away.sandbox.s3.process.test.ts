import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Client } from '@temporalio/client';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { openSharedState, type SharedState } from '../../infra/store/shared-state.ts';
import { connectClient } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { openJournal } from '../../infra/trainer/journal.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import { startS3Server } from '../helpers/store/s3-server.ts';
import { until } from '../helpers/until.ts';
import { holdRun, noStep } from './held-run.ts';
import { pendingOf, turn } from './pending.ts';
import { rolloutResults } from './rollout-results.ts';

const runId = 'on-a-bucket';
const awayMs = 60_000;
const request: RunRequest = {
  tasks: 'generated:train/3',
  steps: 2,
  groupsPerStep: 2,
  rolloutsPerGroup: 2,
  maxStaleness: 1,
  training: { zeroVariance: 'keep', klCoef: 0.02 },
  budget: noStep,
  settings: { agent: 'mini', sandbox: 'local', maxTurns: 6, agentTimeoutSec: 600, sampling: { maxTokensPerTurn: 48 } },
};

describe('a training run whose store is a bucket that goes away for a minute', () => {
  let home: string;
  let config: Config;
  let stack: RunningStack;
  let state: SharedState;
  let status: RunStatus;
  let rollouts: readonly RolloutResult[];
  let server: Awaited<ReturnType<typeof startS3Server>>;

  before(async () => {
    server = await startS3Server();
    home = await mkdtemp(join(tmpdir(), 'temper-bucket-'));
    const { bucket, prefix } = server.place();
    config = readConfig({
      ...process.env,
      TEMPORAL_ADDRESS: undefined,
      TEMPER_HOME: home,
      TEMPER_STORE: `s3://${bucket}/${prefix}`,
      TEMPER_STORE_ENDPOINT: server.url,
      TEMPER_SANDBOX: 'local',
      TEMPER_HOST: 'on-a-bucket',
      TEMPER_TEMPORAL_PORT: String(await freePort()),
      TEMPER_UI_PORT: String(await freePort()),
      TEMPER_POLICY_PORT: String(await freePort()),
    });
    state = await openSharedState(config.store);
    stack = await startStack({ config, progress: (line) => console.log(line) }, AbortSignal.timeout(300_000));
    const { client, close } = await connectClient(temporalTarget(config));
    await client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId: runId, args: [request] });
    const policyPid = () => stack.parts().find(({ name }) => name === 'policy')?.pid ?? null;
    const run = holdRun({ client, runId, request, policyPid });
    await run.allowHeld();
    await until(() => isAgentAtWork(client), 240_000);
    await server.kill();
    run.letGo();
    const killedAt = performance.now();
    const failure = await until(() => failureOf(client), 240_000);
    console.log(`a stage is retried: ${failure}`);
    await until(() => performance.now() - killedAt > awayMs, 2 * awayMs);
    await server.start();
    await run.allowAll();
    status = await client.workflow.getHandle(runId).result();
    rollouts = await rolloutResults(client, status.rolloutsStarted);
    await close();
  });
  after(async () => {
    await stack?.close();
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  async function isAgentAtWork(client: Client): Promise<boolean> {
    for await (const { what } of pendingOf(client, config, runId, ['rollout'])) if (what === turn) return true;
    return false;
  }

  it('completes, and every rollout is scored', () => {
    assert.equal(status.phase, 'done');
    assert.equal(status.step, request.steps);
    assert.ok(rollouts.length >= 8);
    for (const { outcome, reward, epochs } of rollouts) {
      assert.deepEqual([outcome, typeof reward, epochs], ['scored', 'number', 1]);
    }
  });

  it('keeps blobs, records and the trainer’s journal in the bucket alone', async () => {
    const below = await readdir(home);
    for (const folder of ['store', 'runs', 'verdicts', 'trainer', 'hosts', 'quarantine']) {
      assert.ok(!below.includes(folder), folder);
    }
    const names = await state.runs.names(status.runKey);
    assert.deepEqual(names.filter((name) => name.startsWith('step-')).toSorted(), ['step-1', 'step-2']);
    const journal = await openJournal(state.objects, status.runKey);
    assert.deepEqual(Object.keys(journal.state.updates), ['1', '2']);
    for (const { trace } of rollouts) await state.blobs.getJson(trace?.trace.digest ?? '');
  });

  it('takes no host without a key of the stack', async () => {
    const other = await mkdtemp(join(tmpdir(), 'temper-bucket-other-'));
    try {
      const taken = readConfig({ ...config.env, TEMPER_HOME: other });
      const started = startStack({ config: taken, parts: ['gateway', 'host'] }, AbortSignal.timeout(300_000));
      await assert.rejects(started, { message: /expected a key of stack .* got none; copy stack.key/ });
    } finally {
      await rm(other, { recursive: true, force: true });
    }
  });
});

/** The message of an activity attempt that failed for the store; null if there is none. */
async function failureOf(client: Client): Promise<string | null> {
  for await (const { workflowId } of client.workflow.list({ query: 'ExecutionStatus="Running"' })) {
    const { raw } = await client.workflow.getHandle(workflowId).describe();
    for (const { activityType, lastFailure } of raw.pendingActivities ?? []) {
      if (lastFailure?.applicationFailureInfo?.type === 'StoreUnavailable') {
        return `${activityType?.name}: ${lastFailure.message}`;
      }
    }
  }
  return null;
}
