import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection, ScheduleNotFoundError, WorkflowNotFoundError } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import {
  type ClientConnection,
  connectClient,
  plainTarget,
  type TemporalTarget,
} from '../../../infra/temporal/connection.ts';
import { locateTemporal } from '../../../infra/temporal/executable.ts';
import { registerSearchAttributes } from '../../../infra/temporal/search-attributes.ts';
import { type DevServer, startDevServer } from '../../../infra/temporal/server.ts';

/** One day, the shortest retention that a server takes. */
const retention = msToTs('1 day');

export interface TestServer {
  readonly address: string;
  readonly namespace: string;
  readonly target: TemporalTarget;
  readonly client: ClientConnection['client'];
  readonly connection: ClientConnection['connection'];
  /** The `temporal` executable, for tests that use it as an operator would. */
  readonly cli: string;
  /** The flags that lead the `temporal` executable to this namespace. */
  readonly cliFlags: readonly string[];
  close(): Promise<void>;
}

/** A server that a test may kill, restart and configure. */
export interface OwnTestServer extends TestServer {
  readonly dbFile: string;
  /** Returns the process that serves at the moment. */
  server(): DevServer;
  /** Starts the server again after a `server().kill()`, on the same port and file. */
  restart(): Promise<void>;
}

/** The variable that holds the address of the Temporal server which all tests of a run share. */
export const sharedTemporalVariable = 'TEMPER_TEST_TEMPORAL_ADDRESS';

/**
 * Gives a suite a namespace of its own, with temper's search attributes, on the server of the test run. A test file that
 * runs without the runner starts a server for itself.
 */
export async function startTestServer(): Promise<TestServer> {
  const address = process.env[sharedTemporalVariable];
  if (address === undefined) return await startOwnTestServer();
  const { path: cli } = await locateTemporal({ env: process.env, progress: (line) => console.error(line) });
  const namespace = `test-${randomUUID()}`;
  const target = plainTarget(address, namespace);
  await registerNamespace(address, namespace);
  const { client, connection, close } = await connectClient(target);
  await registerSearchAttributes(connection, namespace);
  return {
    address,
    namespace,
    target,
    client,
    connection,
    cli,
    cliFlags: cliFlags(address, namespace),
    async close() {
      await endEverything(client);
      await close();
    },
  };
}

function cliFlags(address: string, namespace: string): readonly string[] {
  return ['--address', address, '--namespace', namespace];
}

async function registerNamespace(address: string, namespace: string): Promise<void> {
  const connection = await Connection.connect({ address });
  try {
    await connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: retention });
  } finally {
    await connection.close();
  }
}

/**
 * Ends what a suite left open, so that its timers and schedules cost the tests that follow nothing. Lists lag behind, and still
 * have what has just ended.
 */
async function endEverything(client: ClientConnection['client']): Promise<void> {
  const unlessGone = (error: unknown): void => {
    if (!(error instanceof ScheduleNotFoundError || error instanceof WorkflowNotFoundError)) throw error;
  };
  for await (const { scheduleId } of client.schedule.list()) {
    await client.schedule.getHandle(scheduleId).delete().catch(unlessGone);
  }
  for await (const { workflowId } of client.workflow.list({ query: 'ExecutionStatus = "Running"' })) {
    await client.workflow.getHandle(workflowId).terminate('the suite has ended').catch(unlessGone);
  }
}

/** Starts a dev server for one suite: free ports, a temporary directory, temper's search attributes registered, no UI. */
export async function startOwnTestServer(
  options: { readonly dynamicConfig?: readonly string[]; readonly ui?: boolean } = {},
): Promise<OwnTestServer> {
  const directory = await mkdtemp(join(tmpdir(), 'temper-temporal-'));
  const { path: executable } = await locateTemporal({ env: process.env, progress: (line) => console.error(line) });
  const dbFile = join(directory, 'temporal.db');
  const start = (port: number): Promise<DevServer> =>
    startDevServer({
      executable,
      env: process.env,
      dbFile,
      logFile: join(directory, 'temporal.log'),
      port,
      uiPort: options.ui === true ? 0 : null,
      ...(options.dynamicConfig === undefined ? {} : { dynamicConfig: options.dynamicConfig }),
    });
  let server = await start(0);
  const { address, namespace } = server;
  const target = plainTarget(address, namespace);
  const client = await connectClient(target);
  await registerSearchAttributes(client.connection, namespace);
  return {
    address,
    namespace,
    target,
    client: client.client,
    connection: client.connection,
    cli: executable,
    cliFlags: cliFlags(address, namespace),
    dbFile,
    server: () => server,
    async restart() {
      await server.exited;
      server = await start(Number(address.slice(address.lastIndexOf(':') + 1)));
    },
    async close() {
      await client.close();
      await server.kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
