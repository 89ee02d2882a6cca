import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { SandboxFailure } from '../failure.ts';
import { killPid } from '../kill.ts';
import { keeperId, rootUid } from '../shell/accounts.ts';
import * as scripts from '../shell/scripts.ts';
import { callDaemon } from './daemon.ts';

const rounds = 5;
const pauseMs = 20;
/** The pause after the first attempt to freeze a container that failed; later ones are longer. */
const frozenMs = 500;

/** Runs a script that ends processes, as a uid inside. Returns false if it ran out of time, as where no memory is left for it. */
type Kill = (uid: number, script: string) => Promise<boolean>;

/** Ends every process of a uid in a container, even if they fight back. */
export async function endAllOf(container: Docker.Container, uid: number, kill: Kill): Promise<void> {
  const find = async () => (await processesOf(container)).filter((one) => one.uid === uid);
  await endProcesses(container, find, () => kill(uid, scripts.killAll));
}

/** Ends what ran in a container whose agent is root, under whatever uid: all but what temper itself keeps there. */
export async function endAllOfRoot(container: Docker.Container, kill: Kill): Promise<void> {
  const find = () => processesOfRoot(container);
  await endProcesses(container, find, async () => {
    for (const uid of new Set((await find()).map((one) => one.uid))) {
      if (!(await kill(uid, uid === rootUid ? scripts.killRoot : scripts.killAll))) return false;
    }
    return true;
  });
}

/** A process of a container, by its pid on the host. */
interface HostProcess {
  readonly pid: number;
  readonly uid: number;
}

async function endProcesses(
  container: Docker.Container,
  find: () => Promise<readonly HostProcess[]>,
  killAll: () => Promise<boolean>,
): Promise<void> {
  for (let round = 0; round < rounds && (await killAll()); round++) {
    if ((await find()).length === 0) return;
    await delay(pauseMs);
  }
  await endFrozen(container, find);
}

/**
 * Freezes the container, kills the processes from the host and thaws it, for processes that kill the killer first, or leave no
 * memory to it. Requires the host's own rights.
 */
async function endFrozen(container: Docker.Container, find: () => Promise<readonly HostProcess[]>): Promise<void> {
  await freeze(container);
  try {
    for (const { pid } of await find()) killPid(pid);
  } catch (cause) {
    const text = 'cannot end the processes of a sandbox from the host: no permission; run the host worker as root';
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

interface ListedProcess extends HostProcess {
  readonly parent: number;
  /** The seconds since its start. */
  readonly age: number;
}

/** Returns the processes of a container that still run, as the daemon reports them. */
async function processesOf(container: Docker.Container): Promise<readonly ListedProcess[]> {
  const { Titles, Processes } = await callDaemon(() => container.top({ ps_args: '-eo uid,pid,ppid,etimes,stat' }));
  const column = (title: string): number => Titles.indexOf(title);
  const [uid, pid, parent, age, state] = ['UID', 'PID', 'PPID', 'ELAPSED', 'STAT'].map(column);
  return (Processes as string[][])
    .filter((row) => !row[state ?? -1]?.startsWith('Z'))
    .map((row) => ({
      uid: Number(row[uid ?? -1]),
      pid: Number(row[pid ?? -1]),
      parent: Number(row[parent ?? -1]),
      age: Number(row[age ?? -1]),
    }));
}

/**
 * Returns the processes of a task whose agent is root, with their uids inside: all but the container's init, its oldest child,
 * which keeps the container alive, and the keeper's.
 */
async function processesOfRoot(container: Docker.Container): Promise<readonly HostProcess[]> {
  const [all, { State }] = await Promise.all([processesOf(container), callDaemon(() => container.inspect())]);
  // With user namespaces the host sees other uids: its uid of the init is root's inside.
  const offset = all.find(({ pid }) => pid === State.Pid)?.uid ?? 0;
  const [alive] = all
    .filter(({ parent }) => parent === State.Pid)
    .sort((one, other) => other.age - one.age || one.pid - other.pid);
  return all
    .filter(({ pid, uid }) => pid !== State.Pid && pid !== alive?.pid && uid - offset !== keeperId)
    .map(({ pid, uid }) => ({ pid, uid: uid - offset }));
}
