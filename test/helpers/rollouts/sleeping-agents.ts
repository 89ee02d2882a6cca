import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeHarborTask } from '../tasks/harbor-task.ts';

/** Agents that sleep until they are woken together, and solve their task then. They are rollouts of `oracle` at one task. */
export interface SleepingAgents {
  /** The address of the task. */
  readonly task: string;
  /** Counts the agents that sleep now. */
  asleep(): number;
  /** Resolves once this number of agents sleep; rejects when the signal aborts. */
  untilAsleep(count: number, signal: AbortSignal): Promise<void>;
  /** Wakes all of them, or so many at most, and returns their number. */
  wake(most?: number): number;
}

/** The limits are small, so that a host admits as many agents as sleep on it. */
const toml = `version = "1.0"
[agent]
timeout_sec = 3600.0
[verifier]
timeout_sec = 120.0
[environment]
docker_image = "temper-tasks:bookworm"
cpus = 1
memory_mb = 64
storage_mb = 64
`;

/** Interval of the searches, each of which reads all processes of the machine. */
const searchEveryMs = 1_000;

/**
 * Writes the task below a root. Its agents sleep for a time that no other process names, by which they are found on this
 * machine whatever sandbox they are in. That takes root, as the agents of a container have another account.
 */
export async function createSleepingAgents(root: string): Promise<SleepingAgents> {
  const seconds = String(randomInt(1_000_000_000, 2_000_000_000));
  const solve = `sleep ${seconds}\necho right > /workspace/answer.txt`;
  const task = await writeHarborTask(root, 'sleeper', { toml, solve });
  const sleepers = () => processesOf(`sleep\0${seconds}\0`);
  const asleep = (): number => sleepers().length;
  return {
    task,
    asleep,
    untilAsleep: async (count, signal) => {
      while (asleep() < count) await sleep(searchEveryMs, undefined, { signal });
    },
    wake: (most) => {
      const found = sleepers().slice(0, most);
      for (const pid of found) process.kill(pid, 'SIGTERM');
      return found.length;
    },
  };
}

/**
 * Finds the processes with this command line in all pid namespaces of the machine. It reads in one go, since thousands of
 * reads through the thread pool would take several times as much CPU time.
 */
function processesOf(commandLine: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => commandLineOf(pid) === commandLine).map(Number);
}

function commandLineOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return ''; // the process has ended
  }
}
