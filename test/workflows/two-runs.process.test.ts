import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { policyHeader } from '../../infra/kits/embedded-policy/server/policies.ts';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { connectClient } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { meanOf } from '../../workflows/algorithms/mean.ts';
import { shortKey } from '../../workflows/contracts/ids.ts';
import { pauseSignal, resumeSignal, sweepStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import { until } from '../helpers/until.ts';

const settings = { agent: 'mini', sandbox: 'local', maxTurns: 2, sampling: { maxTokensPerTurn: 16 } } as const;
/** More steps than a run makes while a test looks at it. */
const endless = 1_000_000;
const training = (seed: number): RunRequest => ({
  tasks: 'generated:train/4',
  seed,
  steps: 2,
  groupsPerStep: 1,
  rolloutsPerGroup: 2,
  training: { zeroVariance: 'keep', klCoef: 0.02 },
  warmUp: { steps: 3, examplesPerStep: 4, learningRate: seed * 1e-3 },
  settings,
});

/** A run on one task, whose policy makes the right choice in three of ten rollouts when it begins. */
const learning: RunRequest = {
  tasks: 'generated:train/6?count=1',
  seed: 6,
  steps: 6,
  groupsPerStep: 1,
  rolloutsPerGroup: 12,
  // Equal seeds then give equal rewards, so that no luck decides whether they rise.
  maxStaleness: 0,
  warmUp: { steps: 120, examplesPerStep: 4, learningRate: 3e-3, learningRateFall: 60, rightShare: 0.3 },
  training: {
    learningRate: 2e-3,
    learningRateRise: 1,
    learningRateFall: 3,
    adamEps: 5e-5,
    gradClipNorm: 0.05,
    klCoef: 0.02,
  },
  settings: { agent: 'mini', sandbox: 'local', maxTurns: 6, sampling: { maxTokensPerTurn: 48 } },
};

describe('work side by side on one stack with the embedded policy', () => {
  let home: string;
  let config: Config;
  let stack: RunningStack;
  let client: Client;
  let close: () => Promise<void>;
  const start = (workflowId: string, input: RunRequest): Promise<WorkflowHandle> =>
    client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId, args: [input] });

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-two-runs-'));
    config = readConfig({
      ...process.env,
      TEMPORAL_ADDRESS: undefined,
      TEMPER_HOME: home,
      TEMPER_SANDBOX: 'local',
      TEMPER_TEMPORAL_PORT: String(await freePort()),
      TEMPER_UI_PORT: String(await freePort()),
      TEMPER_POLICY_PORT: String(await freePort()),
      TEMPER_METRICS_PORT: String(await freePort()),
    });
    stack = await startStack({ config, progress: () => {} }, AbortSignal.timeout(300_000));
    ({ client, close } = await connectClient(temporalTarget(config)));
  });
  after(async () => {
    await close?.();
    await stack?.close();
    await rm(home, { recursive: true, force: true });
  });

  it('trains two runs, each by weights of its own, while the trainer of a third is dead, which was killed in its midst', async (t) => {
    const [url = assert.fail()] = config.pool.urls;
    const trainer = await startTrainer();
    t.after(trainer.kill);
    const other = { urls: [url], model: 'policy', publish: 'lora', trainer: { url: trainer.url, model: 'policy' } };
    await writeFile(config.pools, JSON.stringify({ other }));
    const third = await start('third', { ...training(1), steps: endless, pool: 'other' });
    const stepOfThird = async (): Promise<number> => ((await third.query('status')) as RunStatus).step;
    await until(async () => (await stepOfThird()) >= 1, 300_000);
    await trainer.kill();
    const step = await stepOfThird();
    const runs = await Promise.all([start('first', training(1)), start('second', training(2))]);
    const results = (await Promise.all(runs.map((run) => run.result()))) as RunStatus[];
    assert.deepEqual(
      results.map(({ phase, step, rollouts }) => [phase, step, rollouts.infra]),
      [
        ['done', 2, 0],
        ['done', 2, 0],
      ],
    );
    assert.ok((await stepOfThird()) <= step + 1, 'only the step whose update had been made may have ended since');
    assert.equal((await third.describe()).status.name, 'RUNNING');
    await third.terminate();
    const { groups, rollouts } = (await third.query('status')) as RunStatus;
    await assertMetrics(2 + 2 + groups.trained, 4 + 4 + rollouts.scored);

    const served = await Promise.all(results.map(({ runKey }) => weightsOf(url, shortKey(runKey))));
    assert.deepEqual(
      served.map(({ label }) => label),
      results.map(({ runKey }) => `2@${shortKey(runKey)}-v2`),
    );
    assert.notEqual(served[0]?.checksum, served[1]?.checksum);
  });

  /** Asserts the number of groups that Prometheus sees as trained, and that of their rewards. */
  async function assertMetrics(trained: number, scored: number): Promise<void> {
    const text = await (await fetch(`http://127.0.0.1:${config.metricsPorts?.control}/metrics`)).text();
    const sum = (name: string, label: string): number =>
      text
        .split('\n')
        .filter((line) => line.startsWith(`${name}{`) && line.includes('agent="mini"') && line.includes(label))
        .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' '))), 0);
    assert.equal(sum('temper_groups_total', 'fate="trained"'), trained, text);
    const rewards = sum('temper_scored_reward_count', 'fate="trained"');
    assert.ok(rewards >= 8 && rewards <= scored, `${rewards} of ${scored} scored rollouts`);
    assert.equal(sum('temper_scored_reward_bucket', 'le="1"'), rewards, 'every reward is 1 at most');
    assert.ok(sum('temper_scored_reward_sum', 'fate="trained"') <= rewards);
    assert.doesNotMatch(text, /^temper_groups_total\{.*quarter="(?!none|[1-4]")/m);
  }

  it('evaluates each of the two runs after its end', async () => {
    const sweep = async (workflowId: string, policy: string): Promise<SweepResult> =>
      (await client.workflow.execute('evaluationSweep', {
        taskQueue: controlQueue,
        workflowId,
        args: [{ tasks: 'generated:test/4', count: 1, policy, settings }],
      })) as SweepResult;
    const results = await Promise.all([sweep('of-first', 'first'), sweep('of-second', 'second')]);
    assert.deepEqual(
      results.map(({ policyVersion, counted, endedEarly }) => [policyVersion, counted, endedEarly]),
      [
        [2, 1, null],
        [2, 1, null],
      ],
    );
    await assert.rejects(sweep('of-none', 'no-such-run'), (error: Error) => {
      const { cause } = error as { cause?: { cause?: Error } };
      return /policy: expected the workflow id of a run, got no-such-run/.test(String(cause?.cause ?? cause));
    });
  });

  it('learns: the rewards of a task rise from step to step', async () => {
    const { phase, recentRewards } = (await (await start('learns', learning)).result()) as RunStatus;
    const [first = assert.fail(), ...others] = recentRewards;
    const last = meanOf(others.slice(-3));
    assert.deepEqual([phase, others.length], ['done', 5]);
    assert.ok(first <= 0.3 && last >= 0.5, `expected a rise, got ${recentRewards.join(', ')}`);
  });

  it('evaluates one version to its end while training publishes others', async () => {
    const run = await start('endless', { ...training(3), steps: endless });
    const statusOf = (): Promise<RunStatus> => run.query('status');
    await until(async () => (await statusOf()).policyVersion >= 1, 300_000);
    const pinned: SweepRequest = { tasks: 'generated:test/4', count: 2, concurrency: 1, settings };
    // It pins its version, and makes its attempts when that is no longer the newest one.
    const sweep = await client.workflow.signalWithStart('evaluationSweep', {
      taskQueue: controlQueue,
      workflowId: 'pinned',
      args: [{ ...pinned, policy: 'endless' }],
      signal: pauseSignal,
      signalArgs: ['the test waits for other versions'] as [string],
    });
    const pin = await until(async () => (await sweep.query(sweepStatusQuery)).policyVersion, 300_000);
    await until(async () => (await statusOf()).policyVersion >= pin + 2, 300_000);
    await sweep.signal(resumeSignal);
    const result: SweepResult = await sweep.result();
    const { policyVersion: atItsEnd } = await statusOf();
    await run.cancel();
    await assert.rejects(run.result(), /cancelled/i);
    const { policyVersion, counted, leftOut, endedEarly } = result;
    assert.ok(policyVersion === pin && pin >= 1);
    assert.ok(atItsEnd >= policyVersion + 2, `version ${policyVersion} was evaluated, ${atItsEnd} was in service`);
    assert.deepEqual([counted, leftOut['other-version'], endedEarly], [2, 0, null]);
  });
});

/** Starts a trainer in a process of its own: another policy server, on a home of its own. */
async function startTrainer(): Promise<{ readonly url: string; kill(): Promise<void> }> {
  const home = await mkdtemp(join(tmpdir(), 'temper-trainer-'));
  const port = await freePort();
  const env = { ...process.env, TEMPER_HOME: home, TEMPER_POLICY_PORT: String(port) };
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../workers/cli.ts'), 'policy'], {
    env,
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  await until(
    () =>
      fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      ),
    300_000,
  );
  return {
    url,
    async kill() {
      child.kill('SIGKILL');
      await ended;
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** The label and the checksum of the weights that a policy's address serves. */
async function weightsOf(url: string, policy: string): Promise<{ readonly label: string; readonly checksum: string }> {
  const headers = { [policyHeader]: policy, 'content-type': 'application/json' };
  const info = (await (await fetch(`${url}/weight_info`, { headers })).json()) as { weight_version: string };
  const checker = { method: 'POST', headers, body: '{"action":"checksum"}' };
  const { checksums } = (await (await fetch(`${url}/weight_checker`, checker)).json()) as {
    checksums: { model: string };
  };
  return { label: info.weight_version, checksum: checksums.model };
}
