import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ClientConnection,
  connectClient,
  plainTarget,
  type TemporalTarget,
} from '../../../infra/temporal/connection.ts';
import { locateTemporal } from '../../../infra/temporal/executable.ts';
import { registerSearchAttributes } from '../../../infra/temporal/search-attributes.ts';
import { type DevServer, startDevServer } from '../../../infra/temporal/server.ts';

export interface TestServer {
  readonly address: string;
  readonly namespace: string;
  readonly target: TemporalTarget;
  readonly client: ClientConnection['client'];
  readonly connection: ClientConnection['connection'];
  /** The `temporal` executable, for tests that use it as an operator would. */
  readonly cli: string;
  readonly dbFile: string;
  /** The process that serves at the moment. */
  server(): DevServer;
  /** Starts it again after a `server().kill()`, on the same port and file. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** A dev server of the test's own: free ports, a temporary directory, our search attributes registered, no UI. */
export async function startTestServer(
  options: { readonly dynamicConfig?: readonly string[]; readonly ui?: boolean } = {},
): Promise<TestServer> {
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
