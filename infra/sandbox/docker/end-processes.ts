import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { SandboxFailure } from '../failure.ts';
import { killPid } from '../kill.ts';
import { callDaemon } from './daemon.ts';

const rounds = 5;
const pauseMs = 20;
/** The pause after the first attempt to freeze a container that failed; later ones are longer. */
const frozenMs = 500;

/** Ends every process of a uid in a container, even if they fight back. `killAll` kills each once, from inside. */
export async function endProcesses(
  container: Docker.Container,
  uid: number,
  killAll: () => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    await killAll();
    if ((await hostPids(container, uid)).length === 0) return;
    await delay(pauseMs);
  }
  await endFrozen(container, uid);
}

/**
 * Freezes the container, kills the processes from the host and thaws it, for processes that kill the killer first. Requires
 * the host's own rights.
 */
async function endFrozen(container: Docker.Container, uid: number): Promise<void> {
  await freeze(container);
  try {
    for (const pid of await hostPids(container, uid)) killPid(pid);
  } catch (cause) {
    const text = `cannot end the processes of uid ${uid} from the host: no permission; run the host worker as root`;
    throw new SandboxFailure('Internal', text, { cause });
  } finally {
    await callDaemon(() => container.unpause());
  }
}

/** Freezes a container. The runtime gives up, and thaws it, when the processes take too long to stop, as on a busy machine. */
async function freeze(container: Docker.Container): Promise<void> {
  for (let round = 1; ; round++) {
    try {
      return await callDaemon(() => container.pause());
    } catch (error) {
      if (round === rounds || !/unable to freeze/.test(errorMessage(error))) throw error;
      await delay(round * frozenMs);
    }
  }
}

/** The host's pids of a uid's processes, as the daemon reports them. */
async function hostPids(container: Docker.Container, uid: number): Promise<readonly number[]> {
  const { Titles, Processes } = await callDaemon(() => container.top({ ps_args: '-eo uid,pid,stat' }));
  const column = (title: string): number => Titles.indexOf(title);
  return (Processes as string[][])
    .filter((row) => Number(row[column('UID')]) === uid && !row[column('STAT')]?.startsWith('Z'))
    .map((row) => Number(row[column('PID')]));
}
