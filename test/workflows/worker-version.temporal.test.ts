import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { versionOf } from '../../workers/worker-version.ts';
import { resumeSignal } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeResult } from '../../workflows/contracts/regrade.ts';
import type { RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepResult } from '../../workflows/contracts/sweep.ts';
import { bundleChanged, findLostSoon } from '../helpers/temporal/changed-workflows.ts';
import { type ScriptedWorkers, startScriptedWorkers } from '../helpers/temporal/scripted-activities.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';
import { until as untilWithin } from '../helpers/until.ts';

const run = promisify(execFile);
const deployment = 'temper-test';
/** Rollouts of the sweep that are in progress when version B is deployed, and those that begin later. */
const inProgress = 96;
const later = 5;
const evaluationsAtOnce = 2;
const graded = 6;
const limitMs = 180_000;
const until = <Seen>(look: () => Seen | Promise<Seen>) => untilWithin(look, limitMs);

describe('a version of the control worker that is deployed while 100 rollouts of the one before are in progress', () => {
  let home: string;
  let server: TestServer;
  let workers: ScriptedWorkers | undefined;
  const agents = Promise.withResolvers<void>();
  /** The number of starts of the agent of each rollout. */
  const starts = new Map<string, number>();
  let evaluations = 0;
  let results: readonly [SweepResult, RunStatus, RegradeResult];

  const version = (buildId: string) => versionOf({ name: deployment, buildId });
  /** Makes a version current, as an operator does. The server knows a version from its first poll on. */
  const makeCurrent = (buildId: string): Promise<true> => {
    const words = ['worker', 'deployment', 'set-current-version', '--yes', ...server.cliFlags];
    const which = ['--deployment-name', deployment, '--build-id', buildId];
    return until(() =>
      run(server.cli, [...words, ...which]).then(
        () => true as const,
        () => false,
      ),
    );
  };
  const start = (type: string, workflowId: string, input: object) =>
    server.client.workflow.start(type, { taskQueue: controlQueue, workflowId, args: [input] });
  /** Counts executions by the version that they were pinned to. */
  const byVersion = (query: string): Promise<number[]> =>
    Promise.all(
      ['A', 'B'].map(async (buildId) => {
        const pinned = `${query} AND TemporalWorkerDeploymentVersion = "${deployment}:${buildId}"`;
        return (await server.client.workflow.count(pinned)).count;
      }),
    );

  /**
   * Makes something happen in the sweep and the regrade; returns whether the sweep has moved on to B. What it begins from then on
   * begins with B, however slowly the server spreads the news of its current version.
   */
  const moveOn = async (): Promise<boolean> => {
    await Promise.all(['sweep', 'regrade'].map((id) => server.client.workflow.getHandle(id).signal(resumeSignal)));
    return (await byVersion('ExecutionStatus = "Running" AND WorkflowId = "sweep"'))[1] === 1;
  };

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-versions-'));
    server = await startTestServer();
    const script = {
      reward: (id: string) => (id.endsWith('rollout-0') ? 0 : 1),
      agent: async (id: string) => {
        if (id.startsWith('graded')) return;
        starts.set(id, (starts.get(id) ?? 0) + 1);
        await agents.promise;
      },
      evaluate: async (id: string) => {
        if (id !== 'regrade') return;
        evaluations += 1;
        await agents.promise;
      },
    };
    const workflowBundle = await bundleChanged('activity-options.ts', findLostSoon);
    workers = await startScriptedWorkers(server, home, script, { workflowBundle, version: version('A') });
    await makeCurrent('A');
    // The model of an upstream keeps its version while the run trains its own.
    const sweepOf = (id: string, count: number, concurrency: number) =>
      start('evaluationSweep', id, { tasks: 'set', count, concurrency, upstream: 'others' });
    await (await sweepOf('graded', graded, graded)).result();
    const open = [
      await sweepOf('sweep', inProgress + later, inProgress),
      await start('trainingRun', 'run', {
        tasks: 'generated:train/1',
        steps: 3,
        groupsPerStep: 2,
        rolloutsPerGroup: 2,
      }),
      await start('regrade', 'regrade', { run: 'graded', concurrency: evaluationsAtOnce }),
    ] as const;
    await until(() => starts.size >= inProgress + 4 && evaluations === evaluationsAtOnce);
    await workers.deploy(version('B'));
    await makeCurrent('B');
    await until(moveOn);
    agents.resolve();
    const [sweep, training, regrade] = open;
    results = await Promise.all([sweep.result(), training.result(), regrade.result()]);
  });
  after(async () => {
    agents.resolve();
    await workers?.close();
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  it('loses no rollout and runs none again', () => {
    const [{ outcomes, counted }, training, regrade] = results;
    const wanted = inProgress + later;
    assert.deepEqual([outcomes.scored, counted], [wanted, wanted], JSON.stringify(results));
    const { phase, step, rollouts, rolloutsStarted } = training;
    assert.deepEqual([phase, step, rollouts.scored], ['done', 3, rolloutsStarted], JSON.stringify(training));
    const again = [...starts].filter(([, times]) => times > 1);
    assert.deepEqual(again, []);
    assert.equal(starts.size, wanted + rolloutsStarted);
    assert.deepEqual([regrade.states.same, evaluations], [graded, graded], JSON.stringify(regrade));
  });

  it('leaves the rollouts and groups in progress with the version that began them, and gets those that begin later', async () => {
    const rollouts = 'WorkflowType = "rollout" AND TemperRun = "sweep"';
    await until(async () => String(await byVersion(rollouts)) === String([inProgress, later]));
    const [before = 0, since = 0] = await byVersion('WorkflowType = "group"');
    assert.ok(before >= 2 && since > 0, `${before} groups with A, ${since} with B`);
  });

  it('gets what continues as new, after which nothing is left with the version before', async () => {
    for (const id of ['sweep', 'run', 'regrade']) {
      const [before = 0, since = 0] = await byVersion(`WorkflowId = "${id}"`);
      assert.ok(before > 0 && since > 0, `${before} executions of ${id} with A, ${since} with B`);
      const { raw } = await server.client.workflow.getHandle(id).describe();
      assert.equal(raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId, 'B');
    }
    await until(async () => (await byVersion('ExecutionStatus = "Running"'))[0] === 0);
  });
});
