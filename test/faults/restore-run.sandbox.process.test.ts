import assert from 'node:assert/strict';
import { copyFile, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { after, before, it } from 'node:test';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { connectClient } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { openJournal } from '../../infra/trainer/journal.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { runStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunRequest, RunStatus } from '../../workflows/contracts/run.ts';
import { until } from '../helpers/until.ts';
import { holdRun, noStep } from './held-run.ts';
import { receivedBy } from './received.ts';

const runId = 'restored';
const limitMs = 400_000;
const request: RunRequest = {
  tasks: 'generated:train/3',
  steps: 3,
  groupsPerStep: 2,
  rolloutsPerGroup: 2,
  maxStaleness: 1,
  onStale: 'keep',
  training: { learningRate: 1e-3, zeroVariance: 'keep', klCoef: 0.02 },
  budget: noStep,
  settings: { agent: 'mini', sandbox: 'local', maxTurns: 4, sampling: { maxTokensPerTurn: 48 } },
};

let home: string;
let config: Config;
let stack: RunningStack;

before(async () => {
  home = await mkdtemp(join(tmpdir(), 'temper-restored-'));
  const ports = { temporal: await freePort(), ui: await freePort(), policy: await freePort() };
  config = readConfig({
    ...process.env,
    TEMPORAL_ADDRESS: undefined,
    TEMPER_HOME: home,
    TEMPER_SANDBOX: 'local',
    TEMPER_HOST: 'restored',
    TEMPER_TEMPORAL_PORT: String(ports.temporal),
    TEMPER_UI_PORT: String(ports.ui),
    TEMPER_POLICY_PORT: String(ports.policy),
  });
  stack = await up();
});
after(async () => {
  await stack?.close();
  await rm(home, { recursive: true, force: true });
});

const up = (): Promise<RunningStack> => startStack({ config }, AbortSignal.timeout(300_000));
const pidOf = (part: string): number | null => stack.parts().find(({ name }) => name === part)?.pid ?? null;

/** Makes all steps that are left, and returns the status with which the run ends. */
async function toTheEnd(change?: (client: Awaited<ReturnType<typeof connectClient>>['client']) => Promise<void>) {
  const { client, close } = await connectClient(temporalTarget(config));
  try {
    await change?.(client);
    await holdRun({ client, runId, request, policyPid: () => pidOf('policy') }).allowAll();
    return (await client.workflow.getHandle(runId).result()) as RunStatus;
  } finally {
    await close();
  }
}

/** Reads the records of what has ended: of rollouts, groups and batches, which are written once. */
async function recordsIn(folder: string, which: RegExp): Promise<Readonly<Record<string, string>>> {
  const names = (await readdir(join(home, folder), { recursive: true })).filter((name) => which.test(name)).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(home, folder, name), 'utf8')));
  return Object.fromEntries(names.map((name, index) => [name, texts[index] ?? '']));
}

/** Lists the sessions at the gateway, of which each epoch of a rollout that was provisioned has one. */
const sessions = async (): Promise<readonly string[]> =>
  [...new Set((await readdir(config.paths.journals)).map((name) => name.replace(/\.\D.*$/, '')))].sort();

/** The records and updates of a run, which an older database of the server must not change. */
async function lastingOf(runKey: string) {
  const { state } = await openJournal(createDirectory(home), runKey);
  return {
    rollouts: await recordsIn('rollouts', /rollout-\d+\.json$/),
    groupsAndBatches: await recordsIn(`runs/${runKey}`, /^(?:group|batch)-\d+\.json$/),
    updates: (await receivedBy(config)).filter(({ kind }) => kind === 'optim_step'),
    // The model itself was loaded again from a checkpoint, by another policy server.
    journal: { step: state.step, updates: state.updates },
    sessions: await sessions(),
  };
}

it('ends as it did, with the batches that it trained and no other update, from an older database of the server', async () => {
  const copy = join(home, 'older.db');
  const first = await toTheEnd(async (client) => {
    await client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId: runId, args: [request] });
    const run = holdRun({ client, runId, request, policyPid: () => pidOf('policy') });
    await run.allow();
    await run.untilMade(1);
    await run.allowHeld();
    const handle = client.workflow.getHandle(runId);
    await until(async () => (await handle.query(runStatusQuery)).inFlight.length === 2, limitMs);
    // The copy is whole, although the server writes.
    const db = new DatabaseSync(config.paths.database, { readOnly: true });
    await backup(db, copy);
    db.close();
    run.letGo();
  });
  const before = await lastingOf(first.runKey);
  assert.deepEqual([first.step, Object.keys(before.rollouts).length, before.updates.length], [3, 12, 3]);

  await stack.close();
  for (const rest of ['-wal', '-shm']) await rm(`${config.paths.database}${rest}`, { force: true });
  await copyFile(copy, config.paths.database);
  stack = await up();
  const second = await toTheEnd(async (client) => {
    const handle = client.workflow.getHandle(runId);
    const again = await until(() => handle.query(runStatusQuery).catch(() => null), limitMs);
    // Its groups in flight have reports, which it may have found by now.
    assert.ok(again.runKey === first.runKey && again.step < 3, JSON.stringify(again));
  });

  assert.deepEqual(await lastingOf(first.runKey), before);
  assert.deepEqual(
    [second.step, second.updates, second.groups, second.rollouts],
    [first.step, first.updates, first.groups, first.rollouts],
  );
});
