import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { keeperId, rootUid } from '../shell/accounts.ts';
import * as scripts from '../shell/scripts.ts';
import { callDaemon } from './daemon.ts';
import { endFrozen } from './end-frozen.ts';

const rounds = 5;
const pauseMs = 20;

/** Runs a script that ends processes, as a uid inside. Returns false if it ran out of time, as where no memory is left for it. */
type Kill = (uid: number, script: string) => Promise<boolean>;

/** Ends every process of a uid in a container, even if they fight back. */
export async function endAllOf(container: Docker.Container, uid: number, kill: Kill): Promise<void> {
  const find = async () => (await processesOf(container)).filter((one) => one.uid === uid);
  if (await areEnded(find, () => kill(uid, scripts.killAll))) return;
  await endFrozen(container, { only: uid });
}

/** Ends what ran in a container whose agent is root, under whatever uid: all but what temper itself keeps there. */
export async function endAllOfRoot(container: Docker.Container, kill: Kill): Promise<void> {
  const find = async () => (await processesOfRoot(container)).ended;
  const killAll = async () => {
    for (const uid of new Set((await find()).map((one) => one.uid))) {
      if (!(await kill(uid, uid === rootUid ? scripts.killRoot : scripts.killAll))) return false;
    }
    return true;
  };
  if (await areEnded(find, killAll)) return;
  const { kept, uidOffset } = await processesOfRoot(container);
  await endFrozen(container, { allBut: keeperId + uidOffset, kept });
}

/** A process of a container, by its pid on the host. */
interface HostProcess {
  readonly pid: number;
  readonly uid: number;
}

/** Kills processes by commands inside. Returns whether they are gone. */
async function areEnded(
  find: () => Promise<readonly HostProcess[]>,
  killAll: () => Promise<boolean>,
): Promise<boolean> {
  for (let round = 0; round < rounds && (await killAll()); round++) {
    if ((await find()).length === 0) return true;
    await delay(pauseMs);
  }
  return false;
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

/** The processes of a container whose agent is root, with their uids inside. */
interface RootProcesses {
  /** All but those that are kept. */
  readonly ended: readonly HostProcess[];
  /** The container's init, and its oldest child, which keeps the container alive. The keeper's are kept, too. */
  readonly kept: readonly number[];
  /** The uid of root on the host: another one than 0 with user namespaces. */
  readonly uidOffset: number;
}

async function processesOfRoot(container: Docker.Container): Promise<RootProcesses> {
  const [all, { State }] = await Promise.all([processesOf(container), callDaemon(() => container.inspect())]);
  const uidOffset = all.find(({ pid }) => pid === State.Pid)?.uid ?? 0;
  const [alive] = all
    .filter(({ parent }) => parent === State.Pid)
    .sort((one, other) => other.age - one.age || one.pid - other.pid);
  const kept = [State.Pid, ...(alive === undefined ? [] : [alive.pid])];
  const ended = all
    .filter(({ pid, uid }) => !kept.includes(pid) && uid - uidOffset !== keeperId)
    .map(({ pid, uid }) => ({ pid, uid: uid - uidOffset }));
  return { ended, kept, uidOffset };
}
