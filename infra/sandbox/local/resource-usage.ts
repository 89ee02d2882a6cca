import { readdirSync } from 'node:fs';
import type { Spawner } from '../../process/spawner/spawner.ts';
import { readIfExists } from './processes.ts';
import { requireProgram } from './programs.ts';

const pageBytes = 4_096;
const walkTimeoutMs = 20_000;
const outputBytes = 2 ** 20;
/** The number of processes that are read before others get their turn: one takes about 10 µs. */
const sliceOfProcesses = 200;

/**
 * Measures the disk use of trees in MB, by one command. Leaves out those that could not be measured in time, because one is very
 * large or the host is overloaded, and those that are gone.
 */
export async function diskUsageMb(
  spawner: Spawner,
  directories: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const argv = [requireProgram('du'), '-skx', '--', ...directories];
  const du = spawner.start({ argv, env: {}, maxOutputBytes: outputBytes });
  const timer = setTimeout(du.kill, walkTimeoutMs);
  try {
    // Files that vanish while du walks make it exit with 1; its sums stand.
    const { stdout } = await du.ended;
    const lines = [...String(stdout).matchAll(/^(\d+)\t(.*)$/gm)];
    return new Map(lines.map(([, kilobytes, directory = '']) => [directory, Number(kilobytes) / 1_024]));
  } finally {
    clearTimeout(timer);
  }
}

/** The processes of this machine at one moment. */
export interface ProcessTable {
  /** Resident memory in MB of a process and its descendants. With a pid namespace's init, that is all of its processes. */
  residentMb(root: number): number;
}

/** Reads every process of this machine once, which is cheaper than to walk through the descendants of many. */
export async function readProcessTable(): Promise<ProcessTable> {
  const pagesOf = new Map<number, number>();
  const childrenOf = new Map<number, number[]>();
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  for (const [index, pid] of pids.entries()) {
    if (index % sliceOfProcesses === 0) await new Promise((resolve) => setImmediate(resolve));
    const stat = readIfExists(`/proc/${pid}/stat`);
    // The command name is in parentheses and may hold spaces and parentheses itself.
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields === undefined) continue;
    pagesOf.set(Number(pid), Number(fields[21]));
    const parent = Number(fields[1]);
    const siblings = childrenOf.get(parent);
    if (siblings === undefined) childrenOf.set(parent, [Number(pid)]);
    else siblings.push(Number(pid));
  }
  return {
    residentMb: (root) => {
      let pages = 0;
      const stack = [root];
      for (let pid = stack.pop(); pid !== undefined; pid = stack.pop()) {
        pages += pagesOf.get(pid) ?? 0;
        stack.push(...(childrenOf.get(pid) ?? []));
      }
      return (pages * pageBytes) / 2 ** 20;
    },
  };
}
