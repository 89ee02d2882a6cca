import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../../../infra/temporal/ports.ts';
import { until } from '../../until.ts';

const run = promisify(execFile);
const startMs = 240_000;
/** The user id of a user without rights, since PostgreSQL refuses to run as root. */
const unprivileged = 65_534;
export const superuser = 'temporal';

/** A PostgreSQL server on a directory and a port of the loopback address. */
export interface Postgresql {
  readonly port: number;
  pid(): number | undefined;
  /** Ends all of its processes at once, as a crash does. */
  crash(): Promise<void>;
  /** Starts it again on the same directory and port; resolves once it answers. */
  start(): Promise<void>;
}

/** Creates a database cluster in a directory, and starts a server on it. */
export async function startPostgresql(programs: string, directory: string): Promise<Postgresql> {
  const user = process.getuid?.() === 0 ? { uid: unprivileged, gid: unprivileged } : {};
  const data = join(directory, 'data');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  if (user.uid !== undefined) await chown(directory, user.uid, user.gid);
  const port = await freePort();
  // Only this machine reaches the port, and only for the time of a test.
  const cluster = ['--pgdata', data, '--username', superuser, '--auth', 'trust', '--no-sync', '--no-instructions'];
  await run(join(programs, 'initdb'), cluster, { ...user, cwd: directory });
  let server: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const log = await open(join(directory, 'postgresql.log'), 'a');
    const settings = {
      port,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: directory,
      // A crash of the server loses nothing by it, only one of the machine does.
      fsync: 'off',
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    server = spawn(join(programs, 'postgres'), ['-D', data, ...options], {
      ...user,
      cwd: directory,
      stdio: ['ignore', log.fd, log.fd],
    });
    await log.close();
    const answers = () =>
      run(join(programs, 'pg_isready'), ['-h', '127.0.0.1', '-p', String(port), '-U', superuser]).then(
        () => true,
        () => false,
      );
    await until(answers, startMs);
  };
  await start();
  return {
    port,
    pid: () => server?.pid,
    async crash() {
      if (server === undefined || server.exitCode !== null) return;
      const exited = once(server, 'exit');
      server.kill('SIGQUIT');
      await exited;
    },
    start,
  };
}
