import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { exitReason } from '../process/exit-reason.ts';
import type { FileLock } from '../process/file-lock.ts';
import { untilListens } from '../process/listens.ts';
import { claimDatabase } from './database.ts';
import { untilHealthy } from './health.ts';
import { partitionConfig } from './partitions.ts';
import { freePort, isPortFree } from './ports.ts';
import { DevServerError, portInUse } from './server-error.ts';
import { isInnerPortTaken, readLogFrom, startFailure } from './server-log.ts';

const loopback = '127.0.0.1';
const namespace = 'default';
const healthyTimeoutMs = 60_000;
const stopTimeoutMs = 10_000;
/** The number of starts: the server chooses the ports of its inner services, and another process may take them first. */
const startAttempts = 3;

export interface DevServerOptions {
  /** The `temporal` executable; see `locateTemporal`. */
  readonly executable: string;
  /** The server's environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The SQLite file, which survives restarts. */
  readonly dbFile: string;
  /** The file to which the server's output is appended. */
  readonly logFile: string;
  /** The port; 0 takes a free one. */
  readonly port: number;
  /** The UI's port; 0 takes a free one, null runs no UI. */
  readonly uiPort: number | null;
  /** Dynamic configuration as `key=<json>`, in addition to temper's own. */
  readonly dynamicConfig?: readonly string[];
  /** Receives the process id as soon as the server runs, long before it answers, so that a supervisor can end it with itself. */
  readonly onSpawn?: (pid: number) => void;
}

export interface DevServer {
  readonly address: string;
  readonly namespace: string;
  readonly uiUrl: string | undefined;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when the process has ended, to the reason. */
  readonly exited: Promise<string>;
  /** Asks the server to end, and kills it if that takes longer than ten seconds. */
  stop(): Promise<void>;
  /** Kills the server with SIGKILL, as a crash would. */
  kill(): Promise<void>;
}

/**
 * Starts Temporal's dev server on a SQLite file and resolves once it answers.
 *
 * - One server per file: a second one fails with `database-locked`. A crashed server's claim is void.
 * - The server has its own process group, so that a Ctrl-C reaches only the caller, which stops it after its workers.
 * - A killed server loses nothing (write-ahead log); a power cut may lose the last moments.
 */
export async function startDevServer(options: DevServerOptions, signal?: AbortSignal): Promise<DevServer> {
  const { path: dbFile, lock } = await claimDatabase(options.dbFile);
  try {
    const dynamicConfig = [...(await partitionConfig(dbFile)), ...(options.dynamicConfig ?? [])];
    for (let attempt = 1; ; attempt += 1) {
      const started = await tryStart({ ...options, dbFile, dynamicConfig }, lock, signal);
      if (!(started instanceof DevServerError)) {
        await lock.nameHolder(started.pid).catch(async (error: unknown) => {
          // Without the lock file another process could open the database, so the server must not outlive it.
          await started.kill();
          throw error;
        });
        const released = started.exited.then(() => lock.release());
        return {
          ...started,
          exited: released.then(() => started.exited),
          stop: () => started.stop().then(() => released),
          kill: () => started.kill().then(() => released),
        };
      }
      if (attempt === startAttempts || !isInnerPortTaken(started)) throw started;
    }
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** The command line of a dev server, with the options that temper depends on. */
function devServerArguments(options: {
  readonly dbFile: string;
  readonly port: number;
  readonly uiPort: number | null;
  readonly dynamicConfig?: readonly string[];
}): string[] {
  return [
    'server',
    'start-dev',
    `--ip=${loopback}`,
    `--port=${options.port}`,
    ...(options.uiPort === null ? ['--headless'] : [`--ui-port=${options.uiPort}`, '--ui-disable-news-fetch']),
    `--db-filename=${options.dbFile}`,
    // Four times the throughput of the default journal, and a killed process still loses nothing.
    '--sqlite-pragma=journal_mode=wal',
    '--sqlite-pragma=synchronous=normal',
    // A shard fetches new tasks at most this many times a second, and this server has one shard. With the default of 20 each stage
    // waits 50 ms, twice; with more than 100, a busy server fetches tasks one at a time.
    '--dynamic-config-value=history.transferProcessorMaxPollRPS=100',
    // The option is off by default in this server version; `temporal workflow pause` needs it.
    '--dynamic-config-value=frontend.WorkflowPauseEnabled=true',
    // Off by default as well: evaluations and images that wait are given out by the weights of their runs. What waits since an
    // earlier start without it is given out all the same.
    '--dynamic-config-value=matching.enableFairness=true',
    ...(options.dynamicConfig ?? []).map((entry) => `--dynamic-config-value=${entry}`),
    // A user's profile configures clients and must not change this server.
    '--disable-config-env',
    '--disable-config-file',
    '--log-level=warn',
  ];
}

async function tryStart(
  options: DevServerOptions,
  lock: FileLock,
  signal?: AbortSignal,
): Promise<DevServer | DevServerError> {
  const port = await claimPort(options.port, 'server');
  const uiPort = options.uiPort === null ? null : await claimPort(options.uiPort, 'UI');
  const { child, logOffset } = await spawnServer(options, lock, { port, uiPort });
  const exited = exitReason(child);
  const address = `${loopback}:${port}`;
  const stopped = new AbortController();
  void exited.then(() => stopped.abort());
  const limits = [stopped.signal, AbortSignal.timeout(healthyTimeoutMs), ...(signal === undefined ? [] : [signal])];
  try {
    const limit = AbortSignal.any(limits);
    await untilHealthy({ host: loopback, port, namespace: namespace }, limit);
    await untilListens(pidOf(child), port, limit);
  } catch (error) {
    await end(child, exited, 'SIGKILL');
    signal?.throwIfAborted();
    return startFailure(options.dbFile, await readLogFrom(options.logFile, logOffset), error);
  }
  return {
    address,
    namespace: namespace,
    uiUrl: uiPort === null ? undefined : `http://${loopback}:${uiPort}`,
    pid: pidOf(child),
    logFile: options.logFile,
    exited,
    stop: () => end(child, exited, 'SIGTERM'),
    kill: () => end(child, exited, 'SIGKILL'),
  };
}

async function claimPort(wanted: number, purpose: string): Promise<number> {
  if (wanted === 0) return await freePort();
  if (!(await isPortFree(wanted))) throw portInUse(wanted, purpose);
  return wanted;
}

async function spawnServer(
  options: DevServerOptions,
  lock: FileLock,
  ports: { readonly port: number; readonly uiPort: number | null },
): Promise<{ readonly child: ChildProcess; readonly logOffset: number }> {
  await mkdir(dirname(options.logFile), { recursive: true });
  const log = await open(options.logFile, 'a');
  try {
    const logOffset = (await log.stat()).size;
    const child = spawn(options.executable, devServerArguments({ ...options, ...ports }), {
      // The server inherits the lock of its database, so that the file stays locked if this process dies before the server.
      stdio: ['ignore', log.fd, log.fd, lock.fd],
      detached: true,
      // Go's default suits large heaps. This heap is small, and its collections took a seventh of the CPU time.
      env: { GOGC: '400', ...options.env },
    });
    await once(child, 'spawn').catch((error: NodeJS.ErrnoException) => {
      throw new DevServerError('start-failed', `expected ${options.executable} to run, got ${error.code}`, {
        cause: error,
      });
    });
    options.onSpawn?.(pidOf(child));
    return { child, logOffset };
  } finally {
    await log.close();
  }
}

async function end(child: ChildProcess, exited: Promise<string>, how: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  child.kill(how);
  const late = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
  await exited;
  clearTimeout(late);
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new DevServerError('start-failed', 'expected a process id from a spawned server');
  return child.pid;
}
