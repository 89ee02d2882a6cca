import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { HostCall } from '../../../workflows/contracts/host-tools.ts';
import { syncDirectory } from '../../process/durable-directory.ts';
import { openExclusive } from '../../process/file-lock.ts';
import type { TurnRecord } from '../branches/turn-record.ts';
import type { OpenSession } from '../control.ts';
import type { Delivery, Samples } from './samples.ts';

/**
 * The append-only file of one session, with one record and its checksum per line. When `append` returns, the record is on
 * disk: the file is opened with O_DSYNC (a write and its fdatasync in one call). A record that a crash cut short is dropped on
 * load, since it was never acknowledged, and so are the zeros after the last record.
 */
export interface Journal {
  append(record: JournalRecord): Promise<void>;
  close(): Promise<void>;
}

/** The reason why a request failed for good, unless the same request is answered later. */
export type RequestFailure =
  | 'context-overflow'
  | 'turn-limit'
  | 'token-budget'
  | 'engine-failure'
  | 'gateway-failure'
  | 'environment-failure';

/** A call of a host tool with the key of its request, by which a retry is recognised. */
export interface HostCallRecord extends HostCall {
  readonly key: string;
}

export type JournalRecord =
  | { readonly kind: 'open'; readonly session: OpenSession; readonly at: number }
  | { readonly kind: 'turn'; readonly turn: TurnRecord }
  /** A turn whose client left, with the tokens that it had by then. Its index is open. */
  | { readonly kind: 'cut'; readonly turn: TurnRecord }
  /** Replies that an agent has got. One that is in no such record may have been lost, unless a later turn continues it. */
  | { readonly kind: 'delivered'; readonly deliveries: readonly Delivery[] }
  | { readonly kind: 'host-call'; readonly call: HostCallRecord }
  /** A failed request; `flag` is the stored name of its reason. */
  | { readonly kind: 'flag'; readonly flag: RequestFailure; readonly key: string; readonly at: number }
  /** The milliseconds that the session has waited for an engine since its start; the last such record counts. */
  | { readonly kind: 'waited'; readonly ms: number }
  /** Written when a process unloads the session. `retries` counts from the session's start, without those of killed processes. */
  | { readonly kind: 'rest'; readonly at: number; readonly retries: number }
  | { readonly kind: 'close'; readonly at: number; readonly retries?: number };

export interface LoadedJournal {
  readonly journal: Journal;
  /** The records that the file held; empty for a new one. */
  readonly records: readonly JournalRecord[];
}

/**
 * Opens a session's journal. Null when there is no such file, or no acknowledged record in it; `locked-elsewhere` when another
 * process writes it.
 */
export function loadJournal(path: string): Promise<LoadedJournal | 'locked-elsewhere' | null> {
  return openJournal(path, false, (file, records, length) =>
    records.length === 0 ? null : { journal: createJournal(path, file, length), records },
  );
}

/** Creates a journal with its first record, or opens the existing one. */
export async function newJournal(path: string, first: JournalRecord): Promise<LoadedJournal | 'locked-elsewhere'> {
  const opened = await openJournal(path, true, async (file, records, length) => {
    const journal = createJournal(path, file, length);
    if (records.length > 0) return { journal, records };
    await journal.append(first);
    await syncDirectory(dirname(path));
    return { journal, records: [first] };
  });
  if (opened === null) throw journalFailure(path, new Error('it was removed while it was created'));
  return opened;
}

/** Opens the file for this process alone, until the journal is closed. */
async function openJournal<Loaded extends LoadedJournal | null>(
  path: string,
  create: boolean,
  load: (file: FileHandle, records: readonly JournalRecord[], length: number) => Loaded | Promise<Loaded>,
) {
  const file = await openExclusive(path, { create }).catch((error: unknown) => {
    throw journalFailure(path, error);
  });
  if (file === null || file === 'locked-elsewhere') return file;
  try {
    const bytes = (await file.stat()).size === 0 ? Buffer.alloc(0) : await file.readFile();
    const { records, length } = readRecords(path, bytes);
    if (length < bytes.length) await file.truncate(length);
    const loaded = await load(file, records, length);
    if (loaded === null) await file.close();
    return loaded;
  } catch (error) {
    await file.close();
    throw error instanceof TemperFailure ? error : journalFailure(path, error);
  }
}

/** The bytes by which a file becomes longer: some ten turns. */
const growthBytes = 32 * 1024;

interface Waiting {
  readonly line: Buffer;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

function createJournal(path: string, file: FileHandle, startLength: number): Journal {
  /** The length of the acknowledged records. */
  let length = startLength;
  /** The length of the file, whose end is zeros. */
  let size = startLength;
  const waiting: Waiting[] = [];
  let flushing: Promise<void> | null = null;
  let unusable: unknown = null;

  async function truncate(): Promise<void> {
    await file.truncate(length);
    size = length;
  }

  /**
   * Writes a record over zeros where there are any, since a file that becomes longer costs the file system a commit of its own.
   * Records are written one by one: then only the last one of a file can be incomplete after a crash.
   */
  async function write(line: Buffer): Promise<void> {
    if (unusable !== null) throw unusable;
    const end = length + line.length;
    if (end <= size) await writeAll(file, line, length);
    else await grow(line, end);
    length = end;
  }

  /** Writes a record that makes the file longer: with zeros after it, unless the disk has no space left for them. */
  async function grow(line: Buffer, end: number): Promise<void> {
    const grown = Math.ceil(end / growthBytes) * growthBytes;
    try {
      await writeAll(file, Buffer.concat([line, Buffer.alloc(grown - end)]), length);
      size = grown;
    } catch (error) {
      if (!isLackOfSpace(error)) throw error;
      await writeAll(file, line, length);
      size = end;
    }
  }

  async function flush(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        await write(next.line);
        next.resolve();
      } catch (error) {
        // After a record that is written in part, later ones could not be read.
        await truncate().catch((cause) => {
          unusable = cause;
        });
        next.reject(journalFailure(path, error));
      }
    }
    flushing = null;
  }

  return {
    append: (record) =>
      new Promise((resolve, reject) => {
        waiting.push({ line: encodeRecord(record), resolve, reject });
        flushing ??= flush();
      }),
    async close() {
      await flushing;
      // The zeros stay, since a host that was declared lost must not shorten the file either.
      await file.close();
    },
  };
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    written += (await file.write(bytes, written, bytes.length - written, position + written)).bytesWritten;
  }
}

const sumLength = 8;
const prefix = '{"sum":"';
const middle = '","record":';

export function encodeRecord(record: JournalRecord): Buffer {
  const json = JSON.stringify(record);
  return Buffer.from(`${prefix}${sumOf(json)}${middle}${json}}\n`);
}

function sumOf(json: string): string {
  return crc32(json).toString(16).padStart(sumLength, '0');
}

/** Parses the acknowledged records of a journal, and returns their length in bytes. */
export function readRecords(path: string, bytes: Buffer): { records: JournalRecord[]; length: number } {
  const records: JournalRecord[] = [];
  let length = 0;
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, length)) {
    const record = decodeRecord(bytes.toString('utf8', length, end));
    if (record === null) {
      if (bytes.indexOf(10, end + 1) < 0) break;
      throw new TemperFailure('StoreUnavailable', `${path}: the record at byte ${length} is damaged; restore the file`);
    }
    records.push(record);
    length = end + 1;
  }
  return { records, length };
}

function decodeRecord(line: string): JournalRecord | null {
  const json = line.slice(prefix.length + sumLength + middle.length, -1);
  const sum = line.slice(prefix.length, prefix.length + sumLength);
  return json !== '' && sum === sumOf(json) ? (JSON.parse(json) as JournalRecord) : null;
}

function journalFailure(path: string, cause: unknown): TemperFailure {
  return isLackOfSpace(cause)
    ? new TemperFailure('DiskFull', `no space left to write ${path}; free some space, then retry`, { cause })
    : new TemperFailure('StoreUnavailable', `cannot use ${path}: ${errorMessage(cause)}`, { cause });
}

function isLackOfSpace(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** Writes the deliveries that are not written yet. */
export async function writeDelivered(
  samples: Pick<Samples, 'takeUnwritten'>,
  journal: Pick<Journal, 'append'>,
): Promise<void> {
  const deliveries = samples.takeUnwritten();
  if (deliveries.length > 0) await journal.append({ kind: 'delivered', deliveries });
}
