import { constants } from 'node:os';
import type { LimitHit, ProcessStatus } from './sandbox.ts';

/** The end of a process. */
export interface ExitRecord {
  readonly exitCode: number;
  readonly signal?: string;
  readonly limit?: LimitHit;
}

/** Whether a text is the name of a limit that a process can exceed. */
export const isLimit = (text: string | undefined): text is LimitHit =>
  text === 'memory' || text === 'pids' || text === 'disk' || text === 'time';

/** The exit code of a process that SIGKILL ended, as the kernel does where memory is full. */
export const killedCode = 137;

const signalNames = new Map<number, string>(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/**
 * Adds the signal's name, since shells and container engines report the end by signal n as 128 + n, and the disk limit if the
 * kernel reports that a file grew beyond it.
 */
export function exitStatus(record: ExitRecord): ExitRecord {
  const signal = signalNames.get(record.exitCode - 128);
  if (signal === undefined) return record;
  const limit = record.limit ?? (signal === 'SIGXFSZ' ? 'disk' : undefined);
  return { ...record, signal, ...(limit === undefined ? {} : { limit }) };
}

/**
 * Returns `running` for a process that an earlier caller ended because its time was over, so that what it left is judged as that
 * caller would have judged it; any other status as it is.
 */
export function asTimeWasOver(status: ProcessStatus): ProcessStatus {
  return status.state === 'exited' && status.limit === 'time' ? { state: 'running' } : status;
}
