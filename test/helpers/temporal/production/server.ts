import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../../../infra/temporal/ports.ts';
import { locateProduction } from './locate.ts';
import { type Postgresql, startPostgresql, superuser } from './postgresql.ts';
import { type Ports, type ServerOptions, serverConfig, settings } from './server-config.ts';

const run = promisify(execFile);
const databases = { temporal: 'temporal', temporal_visibility: 'visibility' } as const;

/** A Temporal server as it runs in production, on PostgreSQL: its processes are of a test, which may crash them. */
export interface ProductionServer {
  readonly address: string;
  readonly metricsPort: number;
  readonly postgresql: Postgresql;
  pid(): number | undefined;
  crash(): Promise<void>;
  /** Starts the server again on the same ports and database. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** Starts PostgreSQL, creates Temporal's schema in it, and starts the server. */
export async function startProductionServer(options: ServerOptions = {}): Promise<ProductionServer> {
  await using undo = new AsyncDisposableStack();
  const programs = await locateProduction({ env: process.env, progress: (line) => console.error(line) });
  const directory = await mkdtemp(join(tmpdir(), 'temper-production-'));
  undo.defer(() => rm(directory, { recursive: true, force: true }));
  await chmod(directory, 0o711); // PostgreSQL has an account of its own
  const postgresql = await startPostgresql(programs.postgresql, join(directory, 'postgresql'));
  undo.defer(() => postgresql.crash());
  await createSchema(programs.sqlTool, postgresql.port);
  const ports = await choosePorts();
  const configFile = join(directory, 'server.yaml');
  const dynamicFile = join(directory, 'dynamic.yaml');
  // YAML is a superset of JSON.
  await writeFile(configFile, JSON.stringify(serverConfig({ ...options, ports, postgresql, dynamicFile })));
  await writeFile(dynamicFile, JSON.stringify(settings(options.settings)));
  let server: ChildProcess | undefined;

  async function start(): Promise<void> {
    const log = await open(join(directory, 'server.log'), 'a');
    const services = options.keys === undefined ? [] : ['internal-frontend'];
    const flags = ['frontend', 'history', 'matching', 'worker', ...services].flatMap((one) => ['--service', one]);
    server = spawn(programs.server, ['--config-file', configFile, '--allow-no-auth', 'start', ...flags], {
      // As for the dev server: fewer collections of garbage for some more memory.
      env: { GOGC: '400', ...process.env },
      stdio: ['ignore', log.fd, log.fd],
    });
    await log.close();
  }

  async function crash(): Promise<void> {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill('SIGKILL');
    await exited;
  }

  await start();
  undo.defer(crash);
  const steps = undo.move();
  return {
    address: `127.0.0.1:${ports.frontend.rpc}`,
    metricsPort: ports.metrics,
    postgresql,
    pid: () => server?.pid,
    crash,
    start,
    close: () => steps.disposeAsync(),
  };
}

/** Creates the two databases with the newest schema that the tool knows. */
async function createSchema(sqlTool: string, port: number): Promise<void> {
  for (const [database, schema] of Object.entries(databases)) {
    const place = [
      '--plugin',
      'postgres12',
      '--ep',
      '127.0.0.1',
      '-p',
      String(port),
      '-u',
      superuser,
      '--db',
      database,
    ];
    await run(sqlTool, [...place, 'create-database']);
    await run(sqlTool, [...place, 'setup-schema', '-v', '0.0']);
    await run(sqlTool, [...place, 'update-schema', '--schema-name', `postgresql/v12/${schema}`]);
  }
}

async function choosePorts(): Promise<Ports> {
  const pair = async () => ({ rpc: await freePort(), membership: await freePort() });
  return {
    frontend: await pair(),
    internalFrontend: await pair(),
    history: await pair(),
    matching: await pair(),
    worker: await pair(),
    metrics: await freePort(),
  };
}
