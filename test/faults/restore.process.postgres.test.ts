import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { promisify } from 'node:util';
import { WorkflowNotFoundError } from '@temporalio/client';
import { type ClientConnection, connectClient, plainTarget } from '../../infra/temporal/connection.ts';
import { registerSearchAttributes } from '../../infra/temporal/search-attributes.ts';
import { pauseSignal, resumeSignal, sweepStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { SweepResult } from '../../workflows/contracts/sweep.ts';
import { locateProduction } from '../helpers/temporal/production/locate.ts';
import { createNamespace } from '../helpers/temporal/production/namespace.ts';
import { superuser } from '../helpers/temporal/production/postgresql.ts';
import { type ProductionServer, startProductionServer } from '../helpers/temporal/production/server.ts';
import { startScriptedWorkers } from '../helpers/temporal/scripted-activities.ts';
import { until as untilWithin } from '../helpers/until.ts';

const run = promisify(execFile);
const until = <Seen>(look: () => Seen | Promise<Seen>) => untilWithin(look, 240_000);
const namespace = 'restored';
const databases = ['temporal', 'temporal_visibility'] as const;

const undo = new AsyncDisposableStack();
let directory: string;
let programs: string;
let server: ProductionServer;
let client: ClientConnection['client'];

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'temper-restore-'));
  undo.defer(() => rm(directory, { recursive: true, force: true }));
  server = await startProductionServer();
  undo.defer(() => server.close());
  programs = (await locateProduction({ env: process.env, progress: () => undefined })).postgresql;
  const target = plainTarget(server.address, namespace);
  await createNamespace(target);
  const connected = await connectClient(target);
  undo.defer(() => connected.close());
  client = connected.client;
  await registerSearchAttributes(connected.connection, namespace);
});
after(() => undo.disposeAsync());

/** Runs one of PostgreSQL's programs on each of Temporal's databases, as the guide says. */
async function onDatabases(program: string, args: (database: string) => readonly string[]): Promise<void> {
  const env = { ...process.env, PGHOST: '127.0.0.1', PGPORT: String(server.postgresql.port), PGUSER: superuser };
  for (const database of databases) await run(join(programs, program), args(database), { env });
}
const dumpOf = (database: string): string => join(directory, `${database}.dump`);

/** The rollouts of the sweep: more than have ended when it is backed up. */
const rollouts = 12;

const startSweep = (workflowId: string, count: number) =>
  client.workflow.start<(request: object) => Promise<SweepResult>>('evaluationSweep', {
    taskQueue: controlQueue,
    workflowId,
    // A start whose answer was lost with the server is made again.
    workflowIdConflictPolicy: 'USE_EXISTING',
    args: [{ tasks: 'set', count, concurrency: 2 }],
  });
const openRollouts = async (): Promise<number> => (await client.workflow.count('ExecutionStatus="Running"')).count;

it('resumes a sweep from a backup of databases and store, which later work does not outlive', async () => {
  const home = join(directory, 'home');
  const backup = join(directory, 'backup');
  const { address } = server;
  /** Holds all agents but the first four, so that the sweep is not over when it is backed up. */
  const paused = Promise.withResolvers<void>();
  let agents = 0;
  const agent = async (): Promise<void> => {
    agents += 1;
    if (agents > 4) await paused.promise;
  };
  const workersOf = () => startScriptedWorkers({ address, client, namespace }, home, { reward: () => 1, agent });

  let workers = await workersOf();
  const kept = await startSweep('kept', rollouts);
  await until(async () => (await kept.query(sweepStatusQuery)).ended >= 2);
  await kept.signal(pauseSignal, 'backup');
  paused.resolve();
  const before = await until(async () => {
    const status = await kept.query(sweepStatusQuery);
    return status.phase === 'paused' && status.inFlight === 0 ? status : null;
  });
  assert.ok(before.ended < rollouts, `${before.ended} of ${rollouts} had ended`);

  await server.crash();
  await onDatabases('pg_dump', (database) => ['--format=custom', `--file=${dumpOf(database)}`, database]);
  await server.start();
  await cp(home, backup, { recursive: true });

  // What happens after the backup, and is lost.
  const later = await until(() => startSweep('later', 2).catch(() => null));
  assert.equal((await later.result()).counted, 2);
  await kept.signal(resumeSignal);
  assert.equal((await kept.result()).counted, rollouts);

  await workers.close();
  await server.crash();
  await onDatabases('pg_restore', (database) => ['--clean', '--if-exists', `--dbname=${database}`, dumpOf(database)]);
  await rm(home, { recursive: true });
  await cp(backup, home, { recursive: true });
  await server.start();
  workers = await until(() => workersOf().catch(() => null));
  try {
    const again = client.workflow.getHandle<() => Promise<SweepResult>>('kept');
    const after = await until(() => again.query(sweepStatusQuery).catch(() => null));
    assert.deepEqual([after.phase, after.ended], ['paused', before.ended]);
    await assert.rejects(client.workflow.getHandle('later').describe(), WorkflowNotFoundError);
    // The list names nothing that the server does not have. It follows what had just ended when the server was backed up.
    await until(async () => (await openRollouts()) === 1);

    await again.signal(resumeSignal);
    const result = await again.result();
    assert.deepEqual([result.counted, result.outcomes.scored, result.meanReward], [rollouts, rollouts, 1]);
  } finally {
    await workers.close();
  }
});
