import { readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Logger } from 'pino';

/** The state of a process in numbers that return to where they were when its work is done. */
export interface ProcessState {
  /** Memory in bytes, after a full garbage collection of the main thread. */
  readonly memory: NodeJS.MemoryUsage;
  readonly openFiles: number;
  /** The timers, sockets, watchers and others that keep the process running, by kind. */
  readonly active: Readonly<Record<string, number>>;
}

export const stateMessage = 'state of this process';

/** Logs the state of this process whenever it gets SIGUSR2, so that one can tell a leak from garbage. Ends with the signal. */
export function reportStateOnSignal(log: Pick<Logger, 'info'>, signal: AbortSignal): void {
  const report = (): void => log.info(stateOfProcess(), stateMessage);
  process.on('SIGUSR2', report);
  signal.addEventListener('abort', () => process.off('SIGUSR2', report), { once: true });
}

function stateOfProcess(): ProcessState {
  collectGarbage();
  const active: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) active[kind] = (active[kind] ?? 0) + 1;
  return { memory: process.memoryUsage(), openFiles: readdirSync('/proc/self/fd').length, active };
}

/** Makes a full garbage collection. Node has no function for it unless a flag is set, which may be done late. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
}
