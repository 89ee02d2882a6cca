import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

/**
 * The identity at the server of this process's workers: `pid@host`, as the SDK's default is, and a random end, because in a
 * container the next process has the same pid.
 */
export const workerIdentity = `${process.pid}@${hostname()}#${randomUUID().slice(0, 8)}`;

/** Returns pid and host of an identity; null if it is not of that form. */
export function readIdentity(identity: string): { readonly pid: number; readonly host: string } | null {
  const [, pid, host] = /^(\d+)@([^#]*)/.exec(identity) ?? [];
  return pid === undefined || host === undefined ? null : { pid: Number(pid), host };
}
