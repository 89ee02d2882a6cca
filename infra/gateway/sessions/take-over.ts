import { readFile } from 'node:fs/promises';
import { withLock } from '../../process/file-lock.ts';
import { replaceFile, storeFailure } from '../../store/files.ts';
import type { OpenSession } from '../control.ts';
import { encodeRecord, readRecords } from './journal.ts';

/** The files of one session in the directory of one host. */
export interface OneSession {
  readonly journal: string;
  readonly sealed: string;
}

export interface TakeOver {
  readonly own: OneSession;
  /** The files of the lost host; they may be the same as the own, if the host itself has come back. */
  readonly lost: OneSession;
  readonly from: string;
  /** The fencing token that this host holds. */
  readonly fence: string;
}

/**
 * Takes the session of a lost host over: copies its journal, up to the last acknowledged record, under this host's fencing token.
 * A process of the lost host that still has the old file open then writes into one that no longer counts. It may be repeated, also
 * after a crash at any point: the copy is there completely or not at all, and once it is there, it is left alone. Returns null if
 * there is nothing to take over.
 */
export function takeOver(request: TakeOver): Promise<OpenSession | 'sealed' | null> {
  // Of two calls, the later one must not replace a journal that already has new turns.
  return withLock(`${request.own.journal}.lock`, () => takeOverAlone(request));
}

async function takeOverAlone({ own, lost, from, fence }: TakeOver): Promise<OpenSession | 'sealed' | null> {
  if ((await readIfThere(own.sealed)) !== null) return 'sealed';
  const mine = await readJournal(own.journal);
  if (mine?.opened.fence === fence) return mine.opened;
  const sealed = await readIfThere(lost.sealed);
  if (sealed !== null) {
    await replaceFile(own.sealed, sealed, 0o600);
    return 'sealed';
  }
  const theirs = await readJournal(lost.journal);
  if (theirs === null) return null;
  const opened = { ...theirs.opened, fence, adoptedFrom: [...(theirs.opened.adoptedFrom ?? []), from] };
  const first = encodeRecord({ kind: 'open', session: opened, at: theirs.at });
  await replaceFile(own.journal, Buffer.concat([first, theirs.rest]), 0o600);
  return opened;
}

/** Reads the first record of a journal, and the bytes of the others. */
async function readJournal(path: string) {
  const bytes = await readIfThere(path);
  if (bytes === null) return null;
  const { records, length } = readRecords(path, bytes);
  const [first] = records;
  if (first?.kind !== 'open') return null;
  return { opened: first.session, at: first.at, rest: bytes.subarray(bytes.indexOf(10) + 1, length) };
}

function readIfThere(path: string): Promise<Buffer | null> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw storeFailure(path, error);
  });
}
