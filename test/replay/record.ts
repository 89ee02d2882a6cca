/*
 * Records the histories that every later change of a workflow must replay: `node test/replay/record.ts <version>`, or only some
 * of them, by name: `node test/replay/record.ts <version> rollout`.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ApplicationFailure } from '@temporalio/activity';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { groupId, rolloutId, stepId } from '../../workflows/contracts/ids.ts';
import { resumeSignal, runStatusQuery, setBudgetUpdate } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeRequest } from '../../workflows/contracts/regrade.ts';
import type { RolloutRequest } from '../../workflows/contracts/rollout.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import type { SweepRequest } from '../../workflows/contracts/sweep.ts';
import type { Script } from '../helpers/temporal/script.ts';
import { startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { createTwiceLostHost } from '../helpers/temporal/twice-lost-host.ts';
import { until } from '../helpers/until.ts';

const [, , version = '', ...names] = process.argv;
if (!/^\d+\.\d+\.\d+$/.test(version))
  throw new Error(`expected a version such as 1.2.3, got ${JSON.stringify(version)}`);
const script: Script = { reward: (id) => (id.endsWith('rollout-0') ? 0 : 1) };
// The limit is low, so that run, sweep and regrade continue as new.
let stack = await startScriptedStack({ script, suggestContinueAsNewAt: 60 });
try {
  await recordRun();
  await recordSweepAndRegrade();
  await recordRollouts();
  await recordCancelledRun();
  await recordCancelledRollouts();
  await recordLostHosts();
  await recordBudgets();
  await recordReaper();
  await recordRetention();
} finally {
  await stack.close();
}
await recordStaleRun();

async function recordRun(): Promise<void> {
  const request: RunRequest = { tasks: 'generated:train/1', steps: 3, groupsPerStep: 2, rolloutsPerGroup: 2 };
  const { runKey }: RunStatus = await execute('trainingRun', 'recorded', request);
  const group = groupId('recorded', runKey, 0);
  await save('training-run-first', 'recorded', runKey);
  await save('training-run-last', 'recorded');
  await save('group', group);
  await save('rollout', rolloutId(group, 0));
  await save('training-step', stepId('recorded', runKey, 1));
}

async function recordSweepAndRegrade(): Promise<void> {
  const sweep: SweepRequest = { tasks: 'generated:test/1', count: 3, attempts: 4, concurrency: 2 };
  const sweepHandle = await start('evaluationSweep', 'recorded-sweep', sweep);
  await sweepHandle.result();
  const regrade: RegradeRequest = { run: 'recorded-sweep', repeat: 2, concurrency: 2 };
  const regradeHandle = await start('regrade', 'recorded-regrade', regrade);
  await regradeHandle.result();
  await save('evaluation-sweep-first', 'recorded-sweep', sweepHandle.firstExecutionRunId);
  await save('evaluation-sweep-last', 'recorded-sweep');
  await save('regrade-first', 'recorded-regrade', regradeHandle.firstExecutionRunId);
  await save('regrade-last', 'recorded-regrade');
}

async function recordRollouts(): Promise<void> {
  const request: RolloutRequest = { task: 'generated:test/1/0' };
  stack.script = { ...script, pulled: true };
  await execute('rollout', 'recorded-pulled', request);
  await save('rollout-pulled', 'recorded-pulled');
  let lost = false;
  const loseOnce = async (): Promise<void> => {
    if (lost) return;
    lost = true;
    throw ApplicationFailure.nonRetryable('the sandbox is gone', 'SandboxLost');
  };
  for (const gradedIn of ['same', 'snapshot'] as const) {
    stack.script = { ...script, gradedIn };
    await execute('rollout', `recorded-${gradedIn}`, request);
    await save(`rollout-${gradedIn}`, `recorded-${gradedIn}`);
  }
  stack.script = { ...script, steps: [{ name: 'first', minReward: 0.5 }, { name: 'second' }] };
  await execute('rollout', 'recorded-steps', request);
  await save('rollout-steps', 'recorded-steps');
  stack.script = { ...script, agent: loseOnce };
  await execute('rollout', 'recorded-lost-sandbox', request);
  await save('rollout-lost-sandbox', 'recorded-lost-sandbox');
  stack.script = script;
}

async function recordCancelledRun(): Promise<void> {
  const end = Promise.withResolvers<void>();
  stack.script = { ...script, agent: () => end.promise };
  const request: RunRequest = { tasks: 'generated:train/1', steps: 3, groupsPerStep: 2, rolloutsPerGroup: 2 };
  const handle = await start('trainingRun', 'recorded-cancelled', request);
  const { runKey } = await until(async () => {
    const status = await handle.query(runStatusQuery);
    return status.inFlight.length > 0 ? status : null;
  });
  const group = groupId('recorded-cancelled', runKey, 0);
  const rollout = rolloutId(group, 0);
  await until(async () => (await statusOf(rollout)) === 'RUNNING');
  await handle.cancel();
  await handle.result().catch(() => {});
  await until(async () => (await statusOf(group)) !== 'RUNNING');
  end.resolve();
  stack.script = script;
  await save('training-run-cancelled', 'recorded-cancelled');
  await save('group-cancelled', group);
  await save('rollout-cancelled', rollout);
}

/** Cancels rollouts at work: the host learns of it at once, and the rollouts keep what they cost. */
async function recordCancelledRollouts(): Promise<void> {
  const end = Promise.withResolvers<void>();
  const begun = new Set<string>();
  const agent = (id: string): Promise<void> => {
    begun.add(id);
    return end.promise;
  };
  stack.script = { ...script, agent };
  const sweep: SweepRequest = { tasks: 'generated:test/1', count: 3, concurrency: 2 };
  const open = [
    await start('rollout', 'recorded-cancel-delivered', { task: 'generated:test/1/0' }),
    await start('evaluationSweep', 'recorded-cancelled-sweep', sweep),
  ];
  await until(() => begun.size === 3);
  for (const handle of open) await handle.cancel();
  for (const handle of open) await handle.result().catch(() => {});
  end.resolve();
  stack.script = script;
  await save('rollout-cancel-delivered', 'recorded-cancel-delivered');
  await save('evaluation-sweep-cancelled', 'recorded-cancelled-sweep');
}

/** Loses the host of a rollout twice: its sandbox is adopted, and then it is not. A reaper finds out that its host is lost. */
async function recordLostHosts(): Promise<void> {
  const host = createTwiceLostHost();
  stack.script = { ...script, ...host.script, isAlive: (name) => name === 'scripted' };
  const handle = await start('rollout', 'recorded-adopted', { task: 'generated:test/1/0' });
  await host.lose(stack.server.client);
  await handle.result();
  await save('rollout-adopted', 'recorded-adopted');
  await execute('reaper', 'recorded-lost-host', { host: 'gone' });
  await save('reaper-lost-host', 'recorded-lost-host');
  stack.script = script;
}

/** Lets a run and a sweep pause at their budgets, and raises these. */
async function recordBudgets(): Promise<void> {
  const run: RunRequest = {
    tasks: 'generated:train/1',
    steps: 1,
    groupsPerStep: 2,
    rolloutsPerGroup: 2,
    budget: { rollouts: 2 },
  };
  const sweep: SweepRequest = { tasks: 'generated:test/1', count: 3, concurrency: 2, budget: { rollouts: 2 } };
  const runHandle = await start('trainingRun', 'recorded-budget', run);
  const sweepHandle = await start('evaluationSweep', 'recorded-sweep-budget', sweep);
  for (const handle of [runHandle, sweepHandle]) {
    await until(async () => (await handle.query<{ readonly phase: string }>('status')).phase === 'paused');
    await handle.executeUpdate(setBudgetUpdate, { args: [{ rollouts: null }] });
    await handle.result();
  }
  await save('training-run-budget', 'recorded-budget', runHandle.firstExecutionRunId);
  await save('evaluation-sweep-budget', 'recorded-sweep-budget');
}

/** Lets all groups of a run be stale after its first step, also more of them than it takes to pause, and then none. */
async function recordStaleRun(): Promise<void> {
  stack = await startScriptedStack({ script: { ...script, version: () => 0 } });
  try {
    const request: RunRequest = {
      tasks: 'generated:train/1',
      steps: 2,
      groupsPerStep: 1,
      rolloutsPerGroup: 2,
      maxStaleness: 0,
    };
    const handle = await start('trainingRun', 'recorded-stale', request);
    for (const stale of [8, 10]) {
      await until(async () => (await handle.query(runStatusQuery)).groups.stale >= stale);
      if (stale === 10) stack.script = script;
      await handle.signal(resumeSignal);
    }
    await handle.result();
    await save('training-run-stale', 'recorded-stale');
  } finally {
    await stack.close();
  }
}

async function recordReaper(): Promise<void> {
  await execute('reaper', 'recorded-reaper', { host: 'scripted' });
  await save('reaper', 'recorded-reaper');
}

async function recordRetention(): Promise<void> {
  await stack.server.client.workflow.execute('retention', {
    taskQueue: controlQueue,
    workflowId: 'recorded-retention',
  });
  await save('retention', 'recorded-retention');
}

async function statusOf(workflowId: string): Promise<string> {
  const handle = stack.server.client.workflow.getHandle(workflowId);
  return handle.describe().then(
    ({ status }) => status.name,
    () => 'NOT_FOUND',
  );
}

function start(type: string, workflowId: string, request: object) {
  return stack.server.client.workflow.start(type, { taskQueue: controlQueue, workflowId, args: [request] });
}

async function execute(type: string, workflowId: string, request: object) {
  return (await start(type, workflowId, request)).result();
}

async function save(name: string, workflowId: string, runId?: string): Promise<void> {
  if (names.length > 0 && !names.includes(name)) return;
  const history = await stack.server.client.workflow.getHandle(workflowId, runId).fetchHistory();
  const file = join(import.meta.dirname, 'histories', `${name}-${version}.json`);
  // Stack traces hold the paths of the machine that recorded, and no replay reads them.
  const withoutStacks = JSON.parse(historyToJSON(history), (key, value) => (key === 'stackTrace' ? '' : value));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify({ workflowId, history: withoutStacks })}\n`, { flag: 'wx' });
  console.log(`${file}: ${history.events?.length} events`);
}
