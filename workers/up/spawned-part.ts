import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import { exitReason } from '../../infra/process/exit-reason.ts';
import type { Config } from '../../infra/settings/config.ts';
import { readLogFrom } from '../../infra/temporal/server-log.ts';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import type { Part, PartName, RunningPart } from './part.ts';

/** The command and the time limits of one of temper's own processes. */
export interface SpawnedPart {
  readonly name: PartName;
  /** Arguments of `temper`, for example `worker control`. */
  readonly command: readonly string[];
  readonly nodeOptions?: readonly string[];
  readonly config: Config;
  readonly logFile: string;
  /** Time within which the process must be ready after its start. */
  readonly readyTimeoutMs: number;
  /** Time that the process gets to finish its work when asked to stop. */
  readonly drainTimeoutMs: number;
  /** Resolves once the process with this pid does its work. */
  untilReady(pid: number, signal: AbortSignal): Promise<void>;
}

/**
 * Makes a part of one of temper's own processes: `node workers/cli.ts <command>`.
 *
 * - It has its own process group: Ctrl-C in the terminal reaches only the supervisor, which stops the parts in order.
 * - Its stdin is a pipe from the supervisor (`--tethered`): it ends when the supervisor has ended, even by SIGKILL.
 */
export function spawnedPart(options: SpawnedPart): Part {
  return {
    name: options.name,
    logFile: options.logFile,
    async start(signal) {
      const { child, logOffset } = await launch(options);
      const running = observe(child, options.drainTimeoutMs);
      try {
        await untilReady(options, running, signal);
      } catch (error) {
        await running.stop();
        signal.throwIfAborted();
        throw new Error(`${describeCause(options, error)}; ${await quoteLog(options, logOffset)}`);
      }
      return running;
    },
  };
}

/**
 * Settings of glibc's allocator, with which a process gives native memory back when its work is done. By default the threads of
 * Temporal's SDK keep what they once needed, in an arena for each: with 200 agents at work, 130 MB of a host worker.
 */
const allocator = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' };

/** The program of this process: TypeScript in a checkout, JavaScript when installed. */
const program = join(import.meta.dirname, `../cli${extname(import.meta.filename)}`);

async function launch(options: SpawnedPart): Promise<{ readonly child: ChildProcess; readonly logOffset: number }> {
  if (options.config.logs === 'stdout') return { child: await spawnPart(options, 'inherit'), logOffset: 0 };
  await mkdir(dirname(options.logFile), { recursive: true });
  const log = await open(options.logFile, 'a');
  try {
    const logOffset = (await log.stat()).size;
    return { child: await spawnPart(options, log.fd), logOffset };
  } finally {
    await log.close();
  }
}

async function spawnPart({ config, nodeOptions = [], command }: SpawnedPart, log: number | 'inherit') {
  const child = spawn(process.execPath, [...nodeOptions, program, ...command, '--tethered'], {
    // With its compiled code cached, a process of a checkout never loads the TypeScript compiler, which takes 20 MB.
    env: { NODE_COMPILE_CACHE: join(config.cacheDir, 'compiled'), ...allocator, ...config.env },
    stdio: ['pipe', log, log],
    detached: true,
  });
  await once(child, 'spawn');
  return child;
}

function observe(child: ChildProcess, drainTimeoutMs: number): RunningPart {
  if (child.pid === undefined) throw new Error('the spawned process has no process id');
  const exited = exitReason(child);
  return {
    pid: child.pid,
    exited,
    async stop() {
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), drainTimeoutMs);
      await exited;
      clearTimeout(late);
    },
  };
}

/** The process ended before it was ready. */
class DiedTooEarly extends Error {}

async function untilReady(options: SpawnedPart, running: RunningPart, signal: AbortSignal): Promise<void> {
  const done = new AbortController();
  const limit = AbortSignal.any([signal, done.signal, AbortSignal.timeout(options.readyTimeoutMs)]);
  limit.throwIfAborted();
  const death = running.exited.then((exit) => {
    throw new DiedTooEarly(exit);
  });
  // Not all waits notice the limit: the SDK opens a connection to its end.
  const over = once(limit, 'abort').then(() => limit.throwIfAborted());
  try {
    await Promise.race([options.untilReady(running.pid, limit), death, over]);
  } finally {
    done.abort();
  }
}

async function quoteLog({ config, logFile }: SpawnedPart, offset: number): Promise<string> {
  if (config.logs === 'stdout') return 'see its lines above';
  const log = (await readLogFrom(logFile, offset)).trim();
  return log === '' ? 'it logged nothing' : `its log:\n${log}`;
}

function describeCause(options: SpawnedPart, error: unknown): string {
  if (error instanceof DiedTooEarly) return `${options.name} ended during its start (${error.message})`;
  // A wait that the limit has ended throws an AbortError, whose cause is the limit's own error.
  const reason = error instanceof Error && error.name === 'AbortError' ? error.cause : error;
  if (reason instanceof DOMException && reason.name === 'TimeoutError') {
    return `${options.name} did not answer within ${options.readyTimeoutMs / 1000} s`;
  }
  return `${options.name} did not start: ${errorMessage(error)}`;
}
