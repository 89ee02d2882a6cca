import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../../infra/random.ts';
import type { PartStatus } from '../../workers/up/part.ts';
import type { Victim } from './victims.ts';

/** A process of a stack that was killed. */
export interface Kill {
  readonly victim: string;
  readonly pid: number;
  /** The time of the kill, in seconds since the first could come. */
  readonly atSec: number;
}

export interface RandomKills {
  readonly seed: string;
  /** The mean time between two kills. */
  readonly meanGapMs: number;
  /** The number of times that each process is killed, if no abort comes first. */
  readonly rounds: number;
  parts(): readonly PartStatus[];
  /** The servers that belong to no stack, by name. They are started again as soon as they were killed. */
  readonly servers?: Readonly<Record<string, Victim>> | undefined;
}

/** The process that starts the commands of a host worker. */
const helper = "the host's helper";
const pollMs = 20;

/**
 * Kills the processes of a stack at random moments, in rounds or until aborted, and returns the kills. Each process is
 * killed once in every round, in an order and after gaps that the seed determines. It does not wait until the stack
 * works again: several processes may be down at once.
 */
export async function killAtRandom(
  { seed, meanGapMs, rounds, parts, servers = {} }: RandomKills,
  signal: AbortSignal,
): Promise<Kill[]> {
  const random = createRandom(seed);
  const kills: Kill[] = [];
  const startedAt = performance.now();
  const victims = [...parts().map(({ name }) => name), helper, ...Object.keys(servers)];
  let back = Promise.resolve();
  for (let round = 0; round < rounds && !signal.aborted; round += 1) {
    for (const victim of random.shuffle(victims)) {
      await pause(random.unit() * 2 * meanGapMs, signal);
      const server = servers[victim];
      // A Temporal server that starts while its database is down ends, so they are killed one after the other.
      if (server !== undefined) await back;
      const pid = server === undefined ? await untilRunning(victim, parts, signal) : server.pid();
      if (pid === null || signal.aborted) break;
      const atSec = (performance.now() - startedAt) / 1000;
      console.log(`kill -9 ${victim} (pid ${pid}) at ${atSec.toFixed(1)} s`);
      kills.push({ victim, pid, atSec });
      if (server === undefined) kill(pid);
      else back = server.kill().then(server.untilBack);
    }
  }
  await back;
  return kills;
}

/** Returns the pid of a process once it runs; null after an abort. */
async function untilRunning(victim: string, parts: RandomKills['parts'], signal: AbortSignal): Promise<number | null> {
  while (!signal.aborted) {
    const part = parts().find(({ name }) => name === (victim === helper ? 'host' : victim));
    const pid = part?.state === 'running' ? part.pid : null;
    const found = pid !== null && victim === helper ? await helperOf(pid) : pid;
    if (found !== null) return found;
    await pause(pollMs, signal);
  }
  return null;
}

/** Returns the pid of the helper process of a worker, or null while it has none. */
async function helperOf(worker: number): Promise<number | null> {
  const read = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
  const children = (await read(`/proc/${worker}/task/${worker}/children`)).split(' ').filter((pid) => pid !== '');
  for (const pid of children) {
    if ((await read(`/proc/${pid}/cmdline`)).includes('spawner/helper')) return Number(pid);
  }
  return null;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // A helper ends with its worker, which may have been killed just now.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/** Sleeps; an abort ends the sleep early, without an error. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
