import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { versionOf } from '../../workers/worker-version.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepResult } from '../../workflows/contracts/sweep.ts';
import { type ScriptedWorkers, startScriptedWorkers } from '../helpers/temporal/scripted-activities.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';
import { until as untilWithin } from '../helpers/until.ts';

const run = promisify(execFile);
const deployment = 'temper-test';
/** Rollouts of the sweep that are in progress when version B is deployed, and those that begin later. */
const inProgress = 100;
const later = 10;
const limitMs = 180_000;
const until = <Seen>(look: () => Seen | Promise<Seen>) => untilWithin(look, limitMs);

describe(`a version of the control worker that is deployed while ${inProgress} rollouts of the one before are in progress`, () => {
  let home: string;
  let server: TestServer;
  let workers: ScriptedWorkers | undefined;
  const agents = Promise.withResolvers<void>();
  /** The number of starts of the agent of each rollout. */
  const starts = new Map<string, number>();
  let sweepResult: SweepResult;
  let runResult: RunStatus;

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

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-versions-'));
    server = await startTestServer();
    const script = {
      reward: (id: string) => (id.endsWith('rollout-0') ? 0 : 1),
      agent: (id: string) => {
        starts.set(id, (starts.get(id) ?? 0) + 1);
        return agents.promise;
      },
    };
    workers = await startScriptedWorkers(server, home, script, { version: version('A') });
    await makeCurrent('A');
    // The model of an upstream keeps its version while the run trains its own.
    const asked = { tasks: 'set', count: inProgress + later, concurrency: inProgress, upstream: 'others' };
    const sweep = await start('evaluationSweep', 'sweep', asked);
    const training = await start('trainingRun', 'run', { steps: 3, groupsPerStep: 2, rolloutsPerGroup: 2 });
    await until(() => starts.size >= inProgress + 4);
    await workers.deploy(version('B'));
    await makeCurrent('B');
    agents.resolve();
    [sweepResult, runResult] = await Promise.all([sweep.result(), training.result()]);
  });
  after(async () => {
    agents.resolve();
    await workers?.close();
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  it('loses no rollout and runs none again', () => {
    assert.deepEqual(
      [sweepResult.outcomes.scored, sweepResult.counted],
      [inProgress + later, inProgress + later],
      JSON.stringify(sweepResult),
    );
    const { phase, step, rollouts, rolloutsStarted } = runResult;
    assert.deepEqual([phase, step, rollouts.scored], ['done', 3, rolloutsStarted], JSON.stringify(runResult));
    const again = [...starts].filter(([, times]) => times > 1);
    assert.deepEqual(again, []);
    assert.equal(starts.size, inProgress + later + rolloutsStarted);
  });

  it('leaves the rollouts and groups in progress with the version that began them, and gets those that begin later', async () => {
    await until(async () => {
      const [before = 0, since = 0] = await byVersion('WorkflowType = "rollout" AND TemperRun = "sweep"');
      return before >= inProgress && since > 0 && before + since === inProgress + later;
    });
    const [before = 0, since = 0] = await byVersion('WorkflowType = "group"');
    assert.ok(before >= 2 && since > 0, `${before} groups with A, ${since} with B`);
  });

  it('gets sweep and run when these continue as new, after which nothing is left with the version before', async () => {
    for (const id of ['sweep', 'run']) {
      const [before = 0, since = 0] = await byVersion(`WorkflowId = "${id}"`);
      assert.ok(before > 0 && since > 0, `${before} executions of ${id} with A, ${since} with B`);
      const { raw } = await server.client.workflow.getHandle(id).describe();
      assert.equal(raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId, 'B');
    }
    await until(async () => (await byVersion('ExecutionStatus = "Running"'))[0] === 0);
  });
});
