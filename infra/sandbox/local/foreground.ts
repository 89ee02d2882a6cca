import { spawn } from 'node:child_process';
import { closeSync, openSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { exitStatus } from '../exit-status.ts';
import { errorCode } from '../failure.ts';
import { createHeadBuffer } from '../head-buffer.ts';
import type { ExecResult } from '../sandbox.ts';
import { readIfExists, requireReached } from './processes.ts';

export interface ForegroundCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The file to which the confinement writes the pid to kill, so that a removal by another process finds it. */
  readonly pidFile: string;
  /** Ends the command and its descendants. */
  readonly end: () => void;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly stdin: Uint8Array | undefined;
}

/** Runs a short local command and collects its output. The command ends with its caller and at its timeout. */
export async function runForeground(command: ForegroundCommand, signal: AbortSignal): Promise<ExecResult> {
  signal.throwIfAborted();
  const pidFile = openSync(command.pidFile, 'wx', 0o600);
  try {
    const result = await collect(command, pidFile, signal);
    requireReached(readIfExists(command.pidFile), result.exitCode, String(result.stderr));
    return result;
  } finally {
    closeSync(pidFile);
    rmSync(command.pidFile, { force: true });
  }
}

function collect(command: ForegroundCommand, pidFile: number, signal: AbortSignal): Promise<ExecResult> {
  const [program = '', ...args] = command.argv;
  const child = spawn(program, args, {
    cwd: '/',
    env: command.env,
    stdio: ['pipe', 'pipe', 'pipe', 'ignore', 'ignore', pidFile],
    // In a separate process group, bubblewrap's second process can be ended even before it is bound to die with the first.
    detached: true,
  });
  const stdout = createHeadBuffer(command.maxOutputBytes);
  const stderr = createHeadBuffer(command.maxOutputBytes);
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
  // A command that does not read its input closes the pipe, which is not a failure.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(command.stdin);

  let timedOut = false;
  const end = (): void => {
    command.end();
    if (child.pid !== undefined) killGroup(child.pid);
  };
  const timer = setTimeout(() => {
    timedOut = true;
    end();
  }, command.timeoutMs);
  signal.addEventListener('abort', end);
  return new Promise<ExecResult>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, killedBy) => {
      if (signal.aborted) return reject(signal.reason);
      const exitCode = code ?? 128 + (killedBy ? constants.signals[killedBy] : 0);
      const { limit: _limit, ...status } = exitStatus({ exitCode });
      const truncated = stdout.truncated() || stderr.truncated();
      resolve({ ...status, timedOut, stdout: stdout.bytes(), stderr: stderr.bytes(), truncated });
    });
  }).finally(() => {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  });
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}
