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
  writeFileSync,
} from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { exitStatus, isLimit } from '../exit-status.ts';
import { errorCode, SandboxFailure } from '../failure.ts';
import type { Account, LimitHit, LogPart, LogRange, ProcessStatus } from '../sandbox.ts';

// The detached processes of a local sandbox, by key. All of their state is in files.

/** Time from a claim to the supervisor's first line, which normally takes milliseconds. After it the claimant must have died. */
const startGraceMs = 2_000;

export interface ClaimedProcess {
  readonly directory: string;
  readonly account: Account;
}

/** Claims a key by creating its directory, which only one caller can. Undefined if the key is already claimed. */
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

/** Every process that was ever claimed in this control directory. */
export function claimedProcesses(control: string): readonly ClaimedProcess[] {
  return namesIn(control).map((key) => {
    const directory = join(control, key);
    return { directory, account: readIfExists(join(directory, 'account')) === 'grader' ? 'grader' : 'agent' };
  });
}

/** The names in a directory; empty if an interrupted removal has already erased it. */
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

/** Whether a claimed process has no result yet and a supervisor that lives or may still start. */
export function isRunning(directory: string): boolean {
  if (!existsSync(directory) || exitCodeOf(directory) !== undefined) return false;
  const record = readIfExists(join(directory, 'pid'))?.trim();
  if (record) return isAlive(record);
  const made = statSync(directory, { throwIfNoEntry: false });
  return made !== undefined && Date.now() - made.mtimeMs < startGraceMs;
}

/** The kernel's clock ticks in a second, by which it states the start of a process. Linux has had 100 since it has had the unit. */
const ticksPerSec = 100;

/** Returns the time since the start of a process by the clock that began at boot; 0 if it was never started. */
export function ageMs(directory: string): number {
  const tick = Number(readIfExists(join(directory, 'pid'))?.split(' ')[1]);
  return Number.isFinite(tick) ? Math.max(0, uptime() * 1000 - (tick * 1000) / ticksPerSec) : 0;
}

export function supervisorPid(directory: string): number | undefined {
  const pid = Number(readIfExists(join(directory, 'pid'))?.split(' ')[0]);
  return pid > 1 ? pid : undefined;
}

/** The host's pid of the command's init; undefined if another process has that pid by now. */
export function commandPid(directory: string): number | undefined {
  return pidIn(join(directory, 'child'));
}

/** The pid that a confinement wrote to a file; undefined if another process has that pid by now. */
export function pidIn(file: string): number | undefined {
  const text = readIfExists(file);
  const pid = Number(/"child-pid": (\d+)/.exec(text ?? '')?.[1]);
  const namespace = /"pid-namespace": (\d+)/.exec(text ?? '')?.[1];
  if (!Number.isInteger(pid) || pid <= 1) return undefined;
  const tick = /"start-tick": (\d+)/.exec(text ?? '')?.[1];
  if (tick !== undefined) return isAlive(`${pid} ${tick}`) ? pid : undefined;
  if (namespace === undefined) return pid;
  return namespaceOf(pid) === `pid:[${namespace}]` ? pid : undefined;
}

/** Records the limit that a process exceeded, before it is killed. The first one stays. */
export function recordLimit(directory: string, limit: LimitHit): void {
  try {
    writeFileSync(join(directory, 'limit'), limit, { flag: 'wx' });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
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

/** Throws if the confinement never reported that the command was reached: such an exit is the host's failure, not a result. */
export function requireReached(report: string | undefined, exitCode: number, output: string): void {
  if (exitCode === 0 || exitCode >= 126 || /"(exit-code|ready)"/.test(report ?? '')) return;
  const text = 'the set-up of the confinement failed before the command ran; see `temper doctor`';
  throw new SandboxFailure('Internal', text, { evidence: output.trim().slice(0, 500) });
}

function resultOf(directory: string): ProcessStatus | undefined {
  const exitCode = exitCodeOf(directory);
  if (exitCode === undefined) return undefined;
  requireReached(readIfExists(join(directory, 'child')), exitCode, readIfExists(join(directory, 'log')) ?? '');
  const limit = readIfExists(join(directory, 'limit'));
  return { state: 'exited', ...exitStatus({ exitCode, ...(isLimit(limit) ? { limit } : {}) }) };
}

/** The exit code; undefined while the supervisor has not finished writing it. */
function exitCodeOf(directory: string): number | undefined {
  const text = readIfExists(join(directory, 'exit'));
  return text !== undefined && /^\d+\n$/.test(text) ? Number(text) : undefined;
}

/** Whether the recorded process lives: a pid stands for the same process only if its start tick is the same. */
function isAlive(record: string): boolean {
  const [pid, startTick] = record.split(' ');
  const stat = readIfExists(`/proc/${pid}/stat`);
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

export function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ESRCH') return undefined;
    throw error;
  }
}
