import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { constants } from 'node:os';
import { createHeadBuffer } from '../head-buffer.ts';
import type { CollectedCommand, EndedCommand, Program, RunningCommand, Spawner } from './spawner.ts';

/** Creates the spawner that forks this process for each command. */
export function createDirectSpawner(): Spawner {
  const running = new Set<RunningCommand>();
  return {
    start: (command) => {
      const started = start(command);
      running.add(started);
      const forget = (): boolean => running.delete(started);
      started.ended.then(forget, forget);
      return started;
    },
    launch,
    close: async () => {
      for (const command of running) command.kill();
      await Promise.allSettled([...running].map(({ ended }) => ended));
    },
  };
}

function start(command: CollectedCommand): RunningCommand {
  let child: ChildProcess;
  try {
    child = spawnCollected(command);
  } catch (error) {
    return { ended: Promise.reject(error), kill: () => undefined };
  }
  return { ended: collect(child, command), kill: () => killGroup(child.pid) };
}

function spawnCollected({ argv, env, reportFile }: CollectedCommand): ChildProcess {
  const [program = '', ...args] = argv;
  const report = reportFile === undefined ? undefined : openSync(reportFile, 'r+');
  try {
    return spawn(program, args, {
      cwd: '/',
      env,
      stdio: ['pipe', 'pipe', 'pipe', ...(report === undefined ? [] : ['ignore' as const, 'ignore' as const, report])],
      // In a separate process group, bubblewrap's second process can be ended even before it is bound to die with the first.
      detached: true,
    });
  } finally {
    if (report !== undefined) closeSync(report);
  }
}

function collect(child: ChildProcess, { stdin, maxOutputBytes }: CollectedCommand): Promise<EndedCommand> {
  const stdout = createHeadBuffer(maxOutputBytes);
  const stderr = createHeadBuffer(maxOutputBytes);
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
  // A command that does not read its input closes the pipe, which is not a failure.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(stdin);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      const exitCode = code ?? 128 + (signal ? constants.signals[signal] : 0);
      const truncated = stdout.truncated() || stderr.truncated();
      resolve({ exitCode, stdout: stdout.bytes(), stderr: stderr.bytes(), truncated });
    });
  });
}

async function launch({ argv, env }: Program): Promise<void> {
  const [program = '', ...args] = argv;
  const child = spawn(program, args, { cwd: '/', env, detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  const failed = once(child, 'error').then(([error]) => Promise.reject(error));
  failed.catch(() => undefined);
  await Promise.race([once(child.stdout, 'close'), failed]);
  child.unref();
}

function killGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
