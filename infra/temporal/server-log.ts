import { open } from 'node:fs/promises';
import { badDatabase, DevServerError, databaseLocked } from './server-error.ts';

const tailBytes = 4_000;
const portTaken = /address already in use/;

/** Reads the server's output since `offset`, or only its end if that is long. */
export async function readLogFrom(logFile: string, offset: number): Promise<string> {
  const file = await open(logFile, 'r');
  try {
    const { size } = await file.stat();
    const start = Math.max(offset, size - tailBytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(tailBytes), 0, tailBytes, start);
    return buffer.subarray(0, bytesRead).toString('utf8');
  } finally {
    await file.close();
  }
}

/** Turns the last output of a server that did not start into the matching error. */
export function startFailure(dbFile: string, log: string, cause: unknown): DevServerError {
  if (/database is locked|SQLITE_BUSY/.test(log)) return databaseLocked(dbFile, 'another process');
  if (/file is not a database/.test(log)) return badDatabase(dbFile, 'a file of another kind');
  if (/no such table/.test(log)) return badDatabase(dbFile, 'a SQLite file of another program');
  if (/malformed|disk image/.test(log)) return badDatabase(dbFile, 'a damaged SQLite file');
  return new DevServerError(
    portTaken.test(log) ? 'port-in-use' : 'start-failed',
    `the Temporal dev server did not start${log === '' ? ', without any output' : `: ${log.trim()}`}`,
    { cause },
  );
}

/** Whether the server lost a race for a port that it had chosen itself, so that another start may succeed. */
export function isInnerPortTaken(error: DevServerError): boolean {
  return error.kind === 'port-in-use';
}
