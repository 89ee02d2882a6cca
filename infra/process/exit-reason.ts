import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Resolves when a process has ended, to the reason: `exit code 1`, `signal SIGKILL`. */
export async function exitReason(child: ChildProcess): Promise<string> {
  const [code, killedBy] = await once(child, 'exit');
  return killedBy === null ? `exit code ${code}` : `signal ${killedBy}`;
}
