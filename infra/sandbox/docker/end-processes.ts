import { setTimeout as delay } from 'node:timers/promises';
import { SandboxFailure } from '../failure.ts';
import { killPid } from '../kill.ts';
import { callDaemon } from './daemon.ts';
import type { ContainerShell } from './shell.ts';

const rounds = 5;
const pauseMs = 20;

/** Ends every process of a uid in a container, even if they fight back. */
export async function endProcesses(shell: ContainerShell, uid: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    await shell.killAll(uid);
    if ((await hostPids(shell, uid)).length === 0) return;
    await delay(pauseMs);
  }
  await endFrozen(shell, uid);
}

/**
 * Freezes the container, kills the processes from the host and thaws it, for processes that kill the killer first. Requires
 * the host's own rights.
 */
async function endFrozen(shell: ContainerShell, uid: number): Promise<void> {
  const { container } = shell;
  await callDaemon(() => container.pause());
  try {
    for (const pid of await hostPids(shell, uid)) killPid(pid);
  } catch (cause) {
    const text = `cannot end the processes of uid ${uid} from the host: no permission; run the host worker as root`;
    throw new SandboxFailure('Internal', text, { cause });
  } finally {
    await callDaemon(() => container.unpause());
  }
}

/** The host's pids of a uid's processes, as the daemon reports them. */
async function hostPids(shell: ContainerShell, uid: number): Promise<readonly number[]> {
  const { Titles, Processes } = await callDaemon(() => shell.container.top({ ps_args: '-eo uid,pid,stat' }));
  const column = (title: string): number => Titles.indexOf(title);
  return (Processes as string[][])
    .filter((row) => Number(row[column('UID')]) === uid && !row[column('STAT')]?.startsWith('Z'))
    .map((row) => Number(row[column('PID')]));
}
