import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { relayRetryMs } from '../../agents/relay/protocol.ts';

/** A time without any gateway that was longer than relays retry: requests failed during it, and no gateway saw them. */
export interface Absence {
  readonly from: number;
  readonly to: number;
}

/**
 * The times at which a journal directory had a gateway, as the gateways recorded them: reports from a sandbox are no evidence.
 * One file holds it: its modification time is the last confirmation, its lines are the absences.
 */
export interface Presence {
  /** Confirms every few seconds that this gateway runs. A gateway that dies before its first confirmation does not count. */
  confirm(): Promise<void>;
  /** Returns all absences, including the one that this gateway's start ended, even before its first confirmation. */
  absences(): Promise<readonly Absence[]>;
}

/** The file's name begins with a dot, which no session's file does. */
const fileName = '.presence';

/** Creates the presence of a gateway that started at `startedAt`. Its methods throw StoreUnavailable. */
export async function createPresence(journalDir: string, startedAt: number): Promise<Presence> {
  const path = join(journalDir, fileName);
  /** The time of this gateway's last confirmation, by a clock that does not jump. */
  let confirmedAtMs = Number.NEGATIVE_INFINITY;

  async function read<T>(use: (file: FileHandle, open: Absence | null) => Promise<T>): Promise<T> {
    try {
      await using file = await open(path, 'a+', 0o600);
      const { mtimeMs: from } = await file.stat();
      const to = from < startedAt ? startedAt : Date.now();
      const isAway = to - from >= relayRetryMs && performance.now() - confirmedAtMs >= relayRetryMs;
      return await use(file, isAway ? { from, to } : null);
    } catch (error) {
      throw new TemperFailure('StoreUnavailable', `cannot write ${path}: ${errorMessage(error)}`, { cause: error });
    }
  }

  // Creates the file, if this is the first gateway.
  await read(async () => {});
  return {
    confirm: () =>
      read(async (file, ended) => {
        const now = new Date();
        if (ended === null) await file.utimes(now, now);
        // One write changes both the lines and the modification time, so no crash can come between them.
        else await file.appendFile(`${JSON.stringify(ended)}\n`);
        confirmedAtMs = performance.now();
      }),
    absences: () =>
      read(async (file, ended) => {
        const lines = (await file.readFile('utf8')).split('\n').filter((line) => line.endsWith('}'));
        return [...lines.map((line) => JSON.parse(line) as Absence), ...(ended === null ? [] : [ended])];
      }),
  };
}
