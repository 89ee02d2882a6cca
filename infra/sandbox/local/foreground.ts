import { rmSync, writeFileSync } from 'node:fs';
import type { EndedCommand, Spawner } from '../../process/spawner/spawner.ts';
import { exitStatus } from '../exit-status.ts';
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
export async function runForeground(
  spawner: Spawner,
  command: ForegroundCommand,
  signal: AbortSignal,
): Promise<ExecResult> {
  signal.throwIfAborted();
  const { pidFile } = command;
  writeFileSync(pidFile, '', { flag: 'wx', mode: 0o600 });
  try {
    const { ended, timedOut } = await untilEnded(spawner, command, signal);
    const { exitCode, stdout, stderr, truncated } = ended;
    requireReached(readIfExists(pidFile), exitCode, String(stderr));
    const { limit: _limit, ...status } = exitStatus({ exitCode });
    return { ...status, timedOut, stdout, stderr, truncated };
  } finally {
    rmSync(pidFile, { force: true });
  }
}

async function untilEnded(
  spawner: Spawner,
  { argv, env, stdin, maxOutputBytes, pidFile, end, timeoutMs }: ForegroundCommand,
  signal: AbortSignal,
): Promise<{ readonly ended: EndedCommand; readonly timedOut: boolean }> {
  const command = spawner.start({ argv, env, stdin, maxOutputBytes, reportFile: pidFile });
  let timedOut = false;
  const endAll = (): void => {
    end();
    command.kill();
  };
  const timer = setTimeout(() => {
    timedOut = true;
    endAll();
  }, timeoutMs);
  signal.addEventListener('abort', endAll);
  try {
    const ended = await command.ended;
    signal.throwIfAborted();
    return { ended, timedOut };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', endAll);
  }
}
