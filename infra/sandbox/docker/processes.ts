import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { exitStatus } from '../exit-status.ts';
import { SandboxFailure } from '../failure.ts';
import {
  type LimitHit,
  type LogPart,
  type LogRange,
  logBytes,
  type ProcessStatus,
  type StartRequest,
  type StartResult,
} from '../sandbox.ts';
import type { StoredSpec } from './labels.ts';
import * as scripts from './scripts.ts';
import type { ContainerShell } from './shell.ts';
import { homeOf } from './uids.ts';

export const blockBytes = 512;
const megabyte = 2 ** 20;
/** Duration of one watch inside the container. It bounds what a caller that died leaves running there. */
const watchSec = 30;
const liveTimeoutMs = 30_000;
const never = new AbortController().signal;

/** The environment entry that marks every process of a key, even one whose parents have ended. */
export const markOf = (key: string): string => `TEMPER_PROCESS=${key}`;

/**
 * The detached processes of one container. The recorder's own stream reports the end at once; without that stream, the keeper's
 * files are polled.
 */
export interface Processes {
  start(request: StartRequest, putFiles: () => Promise<void>, signal: AbortSignal): Promise<StartResult>;
  status(key: string, signal: AbortSignal): Promise<ProcessStatus>;
  /** Waits for any status but `running`; resolves with `running` after a while. */
  watch(key: string, signal: AbortSignal): Promise<ProcessStatus>;
  readLog(key: string, range: LogRange, signal: AbortSignal): Promise<LogPart>;
}

/** The ends that recorders report to this process, by container and key; shared by all handles of a sandbox. */
export type Recorders = Map<string, Promise<ProcessStatus | undefined>>;

export function createProcesses(
  shell: ContainerShell,
  spec: StoredSpec,
  recorders: Recorders,
  container: string,
): Processes {
  const own = (key: string): string => `${container}/${key}`;
  const status = async (key: string, signal: AbortSignal): Promise<ProcessStatus> => {
    const { stdout } = await shell.run({ role: 'keeper', text: scripts.status, args: [key] }, signal);
    return parseStatus(String(stdout));
  };

  const start = async (
    request: StartRequest,
    putFiles: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<StartResult> => {
    signal.throwIfAborted();
    const { key, account, argv, env } = request;
    const token = randomUUID();
    const recorder = record(shell, [key, token, String(logBytes / blockBytes), String(spec.pids)]);
    if ((await recorder.claimed) === 'already-started') return 'already-started';
    recorders.set(own(key), recorder.ended);
    // A result never changes, so it is kept. A stream that broke has nothing more to report.
    void recorder.ended.then((status) => status ?? recorders.delete(own(key)));
    await putFiles();
    const limits = [String(spec.pids), String((spec.diskMb * megabyte) / blockBytes)];
    const [mark = '', value = ''] = markOf(key).split('=');
    await shell.runDetached({
      role: account,
      text: scripts.detached,
      args: [key, token, ...limits, request.cwd ?? spec.workdir, ...argv],
      env: { HOME: homeOf(account), LANG: 'C.UTF-8', ...env, [mark]: value },
    });
    await recorder.live;
    return 'started';
  };

  const watch = async (key: string, signal: AbortSignal): Promise<ProcessStatus> => {
    const live = recorders.get(own(key));
    const ended = live && (await withTimeout(live, watchSec * 1_000, signal));
    if (ended) return ended;
    const script = { role: 'keeper', text: scripts.watchStatus, args: [key, String(watchSec)] } as const;
    const { stdout } = await shell.run(script, signal);
    return parseStatus(String(stdout));
  };

  const readLog = async (key: string, { fromByte, maxBytes }: LogRange, signal: AbortSignal): Promise<LogPart> => {
    const args = [key, String(fromByte + 1), String(maxBytes)];
    const script = { role: 'keeper', text: scripts.readLog, args, maxOutputBytes: Math.max(maxBytes, 64) } as const;
    const { stdout, stderr } = await shell.run(script, signal);
    const truncated = Number.parseInt(String(stderr), 10) >= logBytes;
    return { bytes: stdout, nextByte: fromByte + stdout.length, truncated };
  };

  return { start, status, watch, readLog };
}

interface Recorder {
  readonly claimed: Promise<'claimed' | 'already-started'>;
  readonly live: Promise<void>;
  /** Undefined if the stream broke before the end; the keeper's files then have the result. */
  readonly ended: Promise<ProcessStatus | undefined>;
}

/** Starts a recorder and reads its output. The recorder outlives this process. */
function record(shell: ContainerShell, args: readonly string[]): Recorder {
  const lines: string[] = [];
  let wake: () => void = () => undefined;
  const listening = shell
    .follow(
      { role: 'keeper', text: scripts.recorder, args },
      (line) => {
        lines.push(line);
        wake();
      },
      never,
    )
    .finally(() => wake());
  const line = async (index: number): Promise<string | undefined> => {
    let over = false;
    while (lines.length <= index && !over) {
      const more = new Promise<void>((resolve) => {
        wake = resolve;
      });
      over = await Promise.race([more.then(() => false), listening.then(() => true)]);
    }
    return lines[index];
  };
  const claimed = line(0).then((text) => {
    if (text === 'claimed' || text === 'already-started') return text;
    throw new SandboxFailure('Internal', `expected the recorder to claim ${args[0]}, got ${JSON.stringify(text)}`);
  });
  const live = claimed.then(async () => {
    if ((await withTimeout(line(1), liveTimeoutMs, never)) === 'live') return;
    throw new SandboxFailure('Internal', `expected ${args[0]} to run within ${liveTimeoutMs} ms, got nothing`);
  });
  const ended = live.then(() => line(2)).then((text) => (text === undefined ? undefined : parseStatus(text)));
  live.catch(() => undefined);
  return { claimed, live, ended: ended.catch(() => undefined) };
}

/** Returns the promise's value if it resolves in time, otherwise undefined. */
async function withTimeout<T>(promise: Promise<T>, timeoutMs: number, signal: AbortSignal): Promise<T | undefined> {
  const over = new AbortController();
  const late = delay(timeoutMs, undefined, { signal: AbortSignal.any([over.signal, signal]) });
  try {
    return await Promise.race([promise, late]);
  } finally {
    late.catch(() => undefined);
    over.abort();
  }
}

function parseStatus(output: string): ProcessStatus {
  const [state, first = '', ...rest] = output.trim().split(' ');
  if (state === 'absent') return { state };
  if (state === 'running') return { state };
  if (state === 'exited') {
    const limit = rest[0];
    return { state, ...exitStatus({ exitCode: Number(first), ...(isLimit(limit) ? { limit } : {}) }) };
  }
  if (state === 'unknown') return { state, evidence: [first, ...rest].join(' ') };
  throw new SandboxFailure('Internal', `expected a process status, got ${JSON.stringify(output)}`);
}

const isLimit = (text: string | undefined): text is LimitHit => text === 'memory' || text === 'pids' || text === 'disk';
