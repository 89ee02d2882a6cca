import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Client } from '@temporalio/client';
import { readConfig } from '../../infra/config.ts';
import { connectClient } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import { until } from '../helpers/until.ts';

const settings = { agent: 'mini', sandbox: 'local', maxTurns: 3, sampling: { maxTokensPerTurn: 24 } } as const;
const training: RunRequest = {
  tasks: 'generated:train/4',
  steps: 200,
  groupsPerStep: 1,
  rolloutsPerGroup: 2,
  training: { zeroVariance: 'keep' },
  warmUp: { steps: 5, examplesPerStep: 4, learningRate: 1e-3 },
  settings,
};
const evaluation: SweepRequest = { tasks: 'generated:test/4', count: 3, attempts: 2, concurrency: 1, settings };

describe('a sweep beside a training run, with the embedded policy', () => {
  let home: string;
  let stack: RunningStack;
  let client: Client;
  let close: () => Promise<void>;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-pinned-'));
    const config = readConfig({
      ...process.env,
      TEMPORAL_ADDRESS: undefined,
      TEMPER_HOME: home,
      TEMPER_SANDBOX: 'local',
      TEMPER_TEMPORAL_PORT: String(await freePort()),
      TEMPER_UI_PORT: String(await freePort()),
      TEMPER_POLICY_PORT: String(await freePort()),
    });
    stack = await startStack({ config, progress: () => {} }, AbortSignal.timeout(300_000));
    ({ client, close } = await connectClient(temporalTarget(config)));
  });
  after(async () => {
    await close?.();
    await stack?.close();
    await rm(home, { recursive: true, force: true });
  });

  it('evaluates one version to its end while training publishes others', async () => {
    const start = (type: string, workflowId: string, input: object) =>
      client.workflow.start(type, { taskQueue: controlQueue, workflowId, args: [input] });
    const run = await start('trainingRun', 'run', training);
    const statusOf = (): Promise<RunStatus> => run.query('status');
    await until(async () => (await statusOf()).policyVersion >= 1, 120_000);
    const sweep = await start('evaluationSweep', 'sweep', evaluation);
    const result: SweepResult = await sweep.result();
    const { policyVersion: atItsEnd } = await statusOf();
    await run.cancel();
    await assert.rejects(run.result(), /cancelled/i);
    const { policyVersion, counted, leftOut, endedEarly } = result;
    assert.ok(policyVersion !== null && policyVersion >= 1);
    assert.ok(atItsEnd >= policyVersion + 2, `version ${policyVersion} was evaluated, ${atItsEnd} was in service`);
    assert.deepEqual([counted, leftOut['other-version'], endedEarly], [6, 0, null]);
  });
});
