import { open } from 'node:fs/promises';
import { badDatabase, DevServerError, databaseLocked } from './server-error.ts';

const TAIL_BYTES = 4_000;
const PORT_TAKEN = /address already in use/;

/** What the server wrote since `offset`, its last part when that is long. */
export async function readLogFrom(logFile: string, offset: number): Promise<string> {
  const file = await open(logFile, 'r');
  try {
    const { size } = await file.stat();
    const start = Math.max(offset, size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, start);
    return buffer.subarray(0, bytesRead).toString('utf8');
  } finally {
    await file.close();
  }
}

/** Turns the last words of a server that did not come up into the error of that kind. */
export function startFailure(dbFile: string, log: string, cause: unknown): DevServerError {
  if (/database is locked|SQLITE_BUSY/.test(log)) return databaseLocked(dbFile, 'another process');
  if (/file is not a database/.test(log)) return badDatabase(dbFile, 'a file of another kind');
  if (/no such table/.test(log)) return badDatabase(dbFile, 'a SQLite file of another program');
  if (/malformed|disk image/.test(log)) return badDatabase(dbFile, 'a damaged SQLite file');
  return new DevServerError(
    PORT_TAKEN.test(log) ? 'port-in-use' : 'start-failed',
    `expected the Temporal dev server to answer, but it ${log === '' ? 'stayed silent' : `said: ${log.trim()}`}`,
    { cause },
  );
}

/** True when the server lost a race for a port that it had chosen itself: starting again is the remedy. */
export function tookAnInnerPort(error: DevServerError): boolean {
  return error.kind === 'port-in-use';
}
