/** Detached processes of a local sandbox, by key: claim, status, waiting, log, end. All state is in files. */
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { exitStatus } from '../exit-status.ts';
import { errorCode, SandboxFailure } from '../failure.ts';
import type { Account, LimitHit, LogPart, LogRange, ProcessStatus } from '../sandbox.ts';

/** How long an observer waits between looks when no file event wakes it: the supervisor may have been killed. */
const lookEveryMs = 500;
/** Between a claim and its supervisor's first line lie milliseconds; beyond this nobody will start it any more. */
const startGraceMs = 2_000;

export interface ClaimedProcess {
  readonly directory: string;
  readonly account: Account;
}

/** The claim is the directory itself: only one caller can make it. Undefined: somebody has it. */
export function claim(control: string, key: string, account: Account): string | undefined {
  const directory = join(control, key);
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return undefined;
    throw error;
  }
  writeFileSync(join(directory, 'account'), account);
  return directory;
}

/** Every process ever claimed here. */
export function claimedProcesses(control: string): readonly ClaimedProcess[] {
  return namesIn(control).map((key) => {
    const directory = join(control, key);
    return { directory, account: readIfThere(join(directory, 'account')) === 'grader' ? 'grader' : 'agent' };
  });
}

/** None where a removal that was broken off has taken the directory already. */
export const namesIn = (directory: string): readonly string[] => (existsSync(directory) ? readdirSync(directory) : []);

export function statusOf(directory: string): ProcessStatus {
  if (!existsSync(directory)) return { state: 'absent' };
  if (isRunning(directory)) return { state: 'running' };
  const result = resultOf(directory);
  if (result) return result;
  const pid = supervisorPid(directory);
  const evidence = pid ? `its supervisor (pid ${pid}) is gone without a result` : 'claimed, never started';
  return { state: 'unknown', evidence };
}

/** Claimed, without a result, and with a supervisor that lives or may still come. */
export function isRunning(directory: string): boolean {
  if (!existsSync(directory) || exitCodeOf(directory) !== undefined) return false;
  const record = readIfThere(join(directory, 'pid'))?.trim();
  if (record) return isAlive(record);
  const made = statSync(directory, { throwIfNoEntry: false });
  return made !== undefined && Date.now() - made.mtimeMs < startGraceMs;
}

export function supervisorPid(directory: string): number | undefined {
  const pid = Number(readIfThere(join(directory, 'pid'))?.split(' ')[0]);
  return pid > 1 ? pid : undefined;
}

/** The host's pid whose end ends the command, if it still is the process it was. */
export function commandPid(directory: string): number | undefined {
  return pidIn(join(directory, 'child'));
}

/** The pid that a confinement reported into `file`, if that still is the process it was. */
export function pidIn(file: string): number | undefined {
  const text = readIfThere(file);
  const pid = Number(/"child-pid": (\d+)/.exec(text ?? '')?.[1]);
  const namespace = /"pid-namespace": (\d+)/.exec(text ?? '')?.[1];
  if (!Number.isInteger(pid) || pid <= 1) return undefined;
  const tick = /"start-tick": (\d+)/.exec(text ?? '')?.[1];
  if (tick !== undefined) return isAlive(`${pid} ${tick}`) ? pid : undefined;
  if (namespace === undefined) return pid;
  return namespaceOf(pid) === `pid:[${namespace}]` ? pid : undefined;
}

/** Writes down which limit ended the process, before it is killed: the first reason stays. */
export function recordLimit(directory: string, limit: LimitHit): void {
  try {
    writeFileSync(join(directory, 'limit'), limit, { flag: 'wx' });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}

/** Resolves at the next change below `directory`, at the latest after `withinMs`. */
export async function nextChange(directory: string, withinMs: number, signal: AbortSignal): Promise<void> {
  const changed = new AbortController();
  const watcher = watch(directory, () => changed.abort());
  watcher.on('error', () => changed.abort());
  try {
    if (exitCodeOf(directory) !== undefined) return;
    await delay(Math.min(withinMs, lookEveryMs), undefined, { signal: AbortSignal.any([changed.signal, signal]) });
  } catch (error) {
    signal.throwIfAborted();
    if (!changed.signal.aborted) throw error;
  } finally {
    watcher.close();
  }
}

export function readLogFile(directory: string, range: LogRange, capBytes: number): LogPart {
  const path = join(directory, 'log');
  if (!existsSync(path)) return { bytes: Buffer.alloc(0), nextByte: range.fromByte, truncated: false };
  const log = openSync(path, 'r');
  try {
    const { size } = fstatSync(log);
    const bytes = Buffer.alloc(Math.min(range.maxBytes, Math.max(0, size - range.fromByte)));
    const got = readSync(log, bytes, 0, bytes.length, range.fromByte);
    return { bytes: bytes.subarray(0, got), nextByte: range.fromByte + got, truncated: size >= capBytes };
  } finally {
    closeSync(log);
  }
}

/** An exit without a sign that the command was ever reached is a failure of the host's, not a result. */
export function requireReached(report: string | undefined, exitCode: number, output: string): void {
  if (exitCode === 0 || exitCode >= 126 || /"(exit-code|ready)"/.test(report ?? '')) return;
  const text = 'expected the command to be shut in and run, got a failure of the set-up; see `temper doctor`';
  throw new SandboxFailure('Internal', text, { evidence: output.trim().slice(0, 500) });
}

function resultOf(directory: string): ProcessStatus | undefined {
  const exitCode = exitCodeOf(directory);
  if (exitCode === undefined) return undefined;
  requireReached(readIfThere(join(directory, 'child')), exitCode, readIfThere(join(directory, 'log')) ?? '');
  const limit = readIfThere(join(directory, 'limit'));
  return { state: 'exited', ...exitStatus({ exitCode, ...(isLimit(limit) ? { limit } : {}) }) };
}

/** Undefined also while the supervisor is writing it. */
function exitCodeOf(directory: string): number | undefined {
  const text = readIfThere(join(directory, 'exit'));
  return text !== undefined && /^\d+\n$/.test(text) ? Number(text) : undefined;
}

const isLimit = (text: string | undefined): text is LimitHit => text === 'memory' || text === 'pids' || text === 'disk';

/** A pid is the same process only if it started at the same tick. */
function isAlive(record: string): boolean {
  const [pid, startTick] = record.split(' ');
  const stat = readIfThere(`/proc/${pid}/stat`);
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields !== undefined && fields[0] !== 'Z' && fields[19] === startTick;
}

function namespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}

export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ESRCH') return undefined;
    throw error;
  }
}
