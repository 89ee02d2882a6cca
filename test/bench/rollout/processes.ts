import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import type { PartStatus } from '../../../workers/up/part.ts';

/**
 * A process whose CPU time is measured. `commands` are the commands that the helper has started and that have ended; a `tree`
 * is a server with the processes that it forks.
 */
export interface MeasuredProcess {
  readonly name: string;
  readonly pid: number;
  readonly of: 'itself' | 'commands' | 'tree';
}

/** Lists the processes of a stack, with the helper that starts the host worker's commands. Call it after a rollout. */
export function processesOf(parts: readonly PartStatus[]): readonly MeasuredProcess[] {
  const own = parts.flatMap(({ name, pid }): MeasuredProcess[] => (pid === null ? [] : [{ name, pid, of: 'itself' }]));
  const host = own.find(({ name }) => name === 'host');
  const helper = host === undefined ? undefined : childrenOf(host.pid).find(isHelper);
  if (helper === undefined) return own;
  return [...own, { name: 'helper', pid: helper, of: 'itself' }, { name: 'commands', pid: helper, of: 'commands' }];
}

function childrenOf(pid: number): readonly number[] {
  const children = readdirSync(`/proc/${pid}/task`).map((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1'),
  );
  return children.join(' ').split(' ').filter(Boolean).map(Number);
}

const isHelper = (pid: number): boolean => readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('/spawner/helper.');

/** Lists the processes that run now; commands have ended. */
export function pidsOf({ pid, of }: MeasuredProcess): readonly number[] {
  if (of === 'commands') return [];
  return of === 'tree' ? [pid, ...childrenOf(pid)] : [pid];
}

/** Reads the CPU time of a process since its start, in ms. The kernel counts it in hundredths of a second. */
export function cpuMsOf({ pid, of }: MeasuredProcess): number {
  const { own, ended } = cpuTimes(pid);
  if (of !== 'tree') return of === 'itself' ? own : ended;
  return childrenOf(pid).reduce((sum, child) => sum + cpuTimes(child).own, own + ended);
}

/** Reads the CPU time of a process, and that of its children that have ended, in ms. */
function cpuTimes(pid: number): { readonly own: number; readonly ended: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [own = 0, ownSystem = 0, ended = 0, endedSystem = 0] = fields.slice(11, 15).map(Number);
  return { own: (own + ownSystem) * 10, ended: (ended + endedSystem) * 10 };
}

/** A clock of the CPU time of one process, exact to nanoseconds, that costs little to read. Threads that ended count no more. */
export interface CpuClock {
  readMs(): number;
  close(): void;
}

export function openCpuClock(measured: MeasuredProcess): CpuClock {
  if (measured.of !== 'itself') return { readMs: () => cpuMsOf(measured), close: () => undefined };
  const directory = `/proc/${measured.pid}/task`;
  const threads = readdirSync(directory).map((thread) => openSync(`${directory}/${thread}/schedstat`, 'r'));
  const line = Buffer.alloc(64);
  const nanoseconds = (thread: number): number => {
    try {
      const length = readSync(thread, line, 0, line.length, 0);
      return Number.parseInt(line.toString('latin1', 0, length), 10);
    } catch {
      return 0;
    }
  };
  return {
    readMs: () => threads.reduce((sum, thread) => sum + nanoseconds(thread), 0) / 1e6,
    close: () => threads.forEach((thread) => void closeSync(thread)),
  };
}
