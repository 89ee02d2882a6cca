/** Ending every process of a uid in a container, also one that fights back. */
import { setTimeout as delay } from 'node:timers/promises';
import { SandboxFailure } from '../failure.ts';
import { killPid } from '../kill.ts';
import { callDaemon } from './daemon.ts';
import type { Inside } from './inside.ts';

const rounds = 5;
const pauseMs = 20;

export async function endUid(inside: Inside, uid: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    await inside.killAll(uid);
    if ((await processesOf(inside, uid)).length === 0) return;
    await delay(pauseMs);
  }
  await endFrozen(inside, uid);
}

/** Somebody kills our killer: freeze the container, kill its processes from the host, thaw. Needs the host's own rights. */
async function endFrozen(inside: Inside, uid: number): Promise<void> {
  const container = inside.container;
  await callDaemon(() => container.pause());
  try {
    for (const pid of await processesOf(inside, uid)) killPid(pid);
  } catch (cause) {
    const text = `expected to end the processes of uid ${uid} from the host, got no right to; run the host worker as root`;
    throw new SandboxFailure('Internal', text, { cause });
  } finally {
    await callDaemon(() => container.unpause());
  }
}

/** The host's pids of a uid's processes, as the daemon sees them. */
async function processesOf(inside: Inside, uid: number): Promise<readonly number[]> {
  const { Titles, Processes } = await callDaemon(() => inside.container.top({ ps_args: '-eo uid,pid,stat' }));
  const column = (title: string): number => Titles.indexOf(title);
  return (Processes as string[][])
    .filter((row) => Number(row[column('UID')]) === uid && !row[column('STAT')]?.startsWith('Z'))
    .map((row) => Number(row[column('PID')]));
}
