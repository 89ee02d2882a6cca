import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { connectClient, plainTarget } from '../../../infra/temporal/connection.ts';
import { locateTemporal } from '../../../infra/temporal/executable.ts';
import { partitionConfig } from '../../../infra/temporal/partitions.ts';
import { freePort } from '../../../infra/temporal/ports.ts';
import { missingSearchAttributes, registerSearchAttributes } from '../../../infra/temporal/search-attributes.ts';
import { type DevServer, type DevServerOptions, startDevServer } from '../../../infra/temporal/server.ts';
import { DevServerError, type DevServerErrorKind } from '../../../infra/temporal/server-error.ts';
import { until } from '../../helpers/until.ts';

/** Counts the tasks that wait in all partitions of a task queue. */
function tasksIn(dbFile: string, taskQueue: string, table: 'tasks' | 'tasks_v2' = 'tasks_v2'): number {
  const sqlite = new DatabaseSync(dbFile, { readOnly: true, timeout: 60_000 });
  try {
    const query = `SELECT count(*) AS tasks FROM ${table} WHERE instr(task_queue_id, ?)`;
    return Number(sqlite.prepare(query).get(Buffer.from(taskQueue))?.tasks);
  } finally {
    sqlite.close();
  }
}

describe('the dev server', () => {
  let directory = '';
  let executable = '';
  let running: DevServer | undefined;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-server-'));
    executable = (await locateTemporal({ env: process.env, progress: console.error })).path;
  });
  after(async () => {
    await running?.kill();
    await rm(directory, { recursive: true, force: true });
  });

  const options = (over: Partial<DevServerOptions> = {}): DevServerOptions => ({
    executable,
    env: process.env,
    dbFile: join(directory, 'one.db'),
    logFile: join(directory, 'server.log'),
    port: 0,
    uiPort: null,
    ...over,
  });
  const portOf = (server: DevServer): number => Number(server.address.split(':')[1]);

  it('keeps workflows and search attributes after a kill, on the same port and file', async () => {
    const first = await startDevServer(options({ uiPort: 0 }));
    running = first;
    const ui = await fetch(first.uiUrl ?? '');
    assert.equal(ui.status, 200);
    const connected = await connectClient(plainTarget(first.address));
    await registerSearchAttributes(connected.connection, first.namespace);
    await registerSearchAttributes(connected.connection, first.namespace);
    await connected.client.workflow.start('unregistered', { workflowId: 'kept', taskQueue: 'none' });
    await first.kill();
    assert.equal(await first.exited, 'signal SIGKILL');

    const second = await startDevServer(options({ port: portOf(first) }));
    running = second;
    assert.deepEqual(await missingSearchAttributes(connected.connection, second.namespace), []);
    const kept = await connected.client.workflow.getHandle('kept').describe();
    assert.equal(kept.status.name, 'RUNNING');
    await connected.close();
  });

  it('reads one partition of each task queue, and all as long as tasks wait in others', async () => {
    const dbFile = join(directory, 'partitions.db');
    const read = async () => (await partitionConfig(dbFile)).at(-1);
    assert.equal(await read(), 'matching.numTaskqueueReadPartitions=1');
    const four = ['matching.numTaskqueueWritePartitions=4', 'matching.numTaskqueueReadPartitions=4'];
    const earlier = await startDevServer(options({ dbFile, dynamicConfig: four }));
    const { client, close } = await connectClient(plainTarget(earlier.address));
    const taskQueue = 'partitioned';
    const ids = Array.from({ length: 12 }, (_, index) => `waits-${index}`);
    await Promise.all(ids.map((workflowId) => client.workflow.start('unregistered', { workflowId, taskQueue })));
    await until(() => tasksIn(dbFile, taskQueue) >= ids.length);
    await close();
    await earlier.kill();
    assert.equal(await read(), 'matching.numTaskqueueReadPartitions=4');
    const sqlite = new DatabaseSync(dbFile);
    sqlite.prepare('DELETE FROM tasks_v2 WHERE instr(task_queue_id, ?)').run(Buffer.from('/_sys/'));
    sqlite.close();
    assert.equal(await read(), 'matching.numTaskqueueReadPartitions=1');
  });

  it('gives out what has waited since it ran without fairness, which keeps its tasks in another table', async () => {
    const dbFile = join(directory, 'unfair.db');
    const queue = { namespace: 'default', taskQueue: { name: 'unfair' } };
    const earlier = await startDevServer(options({ dbFile, dynamicConfig: ['matching.enableFairness=false'] }));
    const { client, close } = await connectClient(plainTarget(earlier.address));
    await client.workflow.start('unregistered', { workflowId: 'waits', taskQueue: queue.taskQueue.name });
    await until(() => tasksIn(dbFile, queue.taskQueue.name, 'tasks') === 1);
    await close();
    await earlier.kill();
    const server = await startDevServer(options({ dbFile }));
    const { connection, close: closeAgain } = await connectClient(plainTarget(server.address));
    const poll = () => connection.workflowService.pollWorkflowTaskQueue({ ...queue, identity: 'test' });
    const task = await connection.withDeadline(Date.now() + 60_000, poll);
    assert.equal(task.workflowExecution?.workflowId, 'waits');
    await closeAgain();
    await server.kill();
  });

  it('rejects a second server on its file, even through a symlink, and names the process that has it', async () => {
    assert.ok(running !== undefined);
    await symlink(join(directory, 'one.db'), join(directory, 'other-name.db'));
    const error = await failure(options({ dbFile: join(directory, 'other-name.db') }), 'database-locked');
    assert.match(error.message, new RegExp(`process id ${running.pid}`));
  });

  it('rejects a port in use and names it', async () => {
    assert.ok(running !== undefined);
    const port = portOf(running);
    const error = await failure(options({ dbFile: join(directory, 'two.db'), port }), 'port-in-use');
    assert.match(error.message, new RegExp(`port ${port}.*server`));
    const listener = createServer();
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const address = listener.address();
    assert.ok(address !== null && typeof address === 'object');
    const uiError = await failure(options({ dbFile: join(directory, 'two.db'), uiPort: address.port }), 'port-in-use');
    assert.match(uiError.message, new RegExp(`port ${address.port}.*UI`));
    listener.close();
  });

  it('does not take the answers of another server for its own, which took the port while it started', async () => {
    const slow = join(directory, 'slow.sh');
    const [begun, go] = [join(directory, 'begun'), join(directory, 'go')];
    const script = `#!/bin/sh\n: >${begun}\nwhile [ ! -e ${go} ]; do sleep 0.1; done\nexec ${executable} "$@"\n`;
    await writeFile(slow, script, { mode: 0o755 });
    const port = await freePort();
    const late = failure(options({ executable: slow, dbFile: join(directory, 'late.db'), port }), 'port-in-use');
    await until(() => existsSync(begun));
    const first = await startDevServer(options({ dbFile: join(directory, 'early.db'), port }));
    await writeFile(go, '');
    await late.finally(() => first.kill());
  });

  it('stops when asked and frees its file', async () => {
    assert.ok(running !== undefined);
    await running.stop();
    running = await startDevServer(options());
    await running.stop();
  });

  it('rejects files that are not a Temporal database', async () => {
    const text = join(directory, 'text.db');
    await writeFile(text, 'not a database at all');
    await failure(options({ dbFile: text }), 'bad-database');
    const torn = join(directory, 'torn.db');
    await writeFile(torn, `SQLite format 3\0${'x'.repeat(5000)}`);
    await failure(options({ dbFile: torn }), 'bad-database');
    await failure(options({ dbFile: directory }), 'bad-database');
  });

  it('rejects an executable that does not run', async () => {
    const error = await failure(options({ executable: join(directory, 'absent') }), 'start-failed');
    assert.match(error.message, /absent.*ENOENT/);
  });

  it('stops waiting when its caller gives up', async () => {
    await assert.rejects(startDevServer(options(), AbortSignal.timeout(50)), { name: 'TimeoutError' });
  });

  it('stays locked after its starter was killed, until it is killed itself', async () => {
    const dbFile = join(directory, 'orphan.db');
    const script = join(import.meta.dirname, '../../helpers/temporal/start-dev-server.ts');
    const starter = spawn(process.execPath, [script, JSON.stringify(options({ dbFile, env: {} }))], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(starter.stdout, 'data');
    const pid = Number(String(line));
    starter.kill('SIGKILL');
    await once(starter, 'exit');
    const error = await failure(options({ dbFile }), 'database-locked');
    assert.match(error.message, new RegExp(`process id ${pid}`));
    process.kill(pid, 'SIGKILL');
    running = await startAfterDeath(options({ dbFile }));
  });

  async function failure(wanted: DevServerOptions, kind: DevServerErrorKind): Promise<DevServerError> {
    const error = await startDevServer(wanted).then(
      async (server) => {
        await server.kill();
        return undefined;
      },
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof DevServerError, `expected a DevServerError, got ${error}`);
    assert.equal(error.kind, kind);
    return error;
  }

  /** Retries, since a killed process ends a moment after the signal. */
  async function startAfterDeath(wanted: DevServerOptions): Promise<DevServer> {
    for (;;) {
      try {
        return await startDevServer(wanted);
      } catch (error) {
        if (!(error instanceof DevServerError && error.kind === 'database-locked')) throw error;
      }
    }
  }
});
