import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { relayRetryMs } from '../../agents/relay/protocol.ts';

/** A time without any gateway, longer than a request is held: what agents asked for then came to nothing, and no gateway saw it. */
export interface Absence {
  readonly from: number;
  readonly to: number;
}

/**
 * When gateways of a journal directory were there, by what they saw themselves: what a sandbox says of them is no evidence.
 * One file: its time says when one was there last, its lines tell of absences.
 */
export interface Presence {
  /** Called every few seconds. A gateway that dies soon after each start has not been there: one counts once it calls. */
  confirm(): Promise<void>;
  /** Also the one that this gateway's coming has ended, if it has not called yet. */
  absences(): Promise<readonly Absence[]>;
}

/** No session's file begins with a dot. */
const fileName = '.presence';

/** `came`: when this gateway came. All of it throws StoreUnavailable. */
export async function createPresence(journalDir: string, came: number): Promise<Presence> {
  const path = join(journalDir, fileName);

  async function read<T>(use: (file: FileHandle, open: Absence | null) => Promise<T>): Promise<T> {
    try {
      await using file = await open(path, 'a+', 0o600);
      const { mtimeMs: from } = await file.stat();
      const to = from < came ? came : Date.now();
      return await use(file, to - from < relayRetryMs ? null : { from, to });
    } catch (error) {
      const why = error instanceof Error ? error.message : error;
      throw new TemperFailure('StoreUnavailable', `can't keep ${path}: ${why}`, { cause: error });
    }
  }

  // A new file begins with this gateway.
  await read(async () => {});
  return {
    confirm: () =>
      read(async (file, ended) => {
        const now = new Date();
        if (ended === null) await file.utimes(now, now);
        // The line and the file's new time are one write: no crash comes between them.
        else await file.appendFile(`${JSON.stringify(ended)}\n`);
      }),
    absences: () =>
      read(async (file, ended) => {
        const lines = (await file.readFile('utf8')).split('\n').filter((line) => line.endsWith('}'));
        return [...lines.map((line) => JSON.parse(line) as Absence), ...(ended === null ? [] : [ended])];
      }),
  };
}
