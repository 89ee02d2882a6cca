import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { type Pack, pack } from 'tar-stream';
import type { Snapshot } from '../../../workflows/contracts/snapshot.ts';
import { piecesOf } from '../../sandbox/carry/contents.ts';
import { type CarriedEntry, carriedLimits, type ReadChanges } from '../../sandbox/changes.ts';
import { wasEndedInside } from '../../sandbox/failure.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { addEntry } from '../../sandbox/tar-entries.ts';
import { usingWhatAgentLeft } from '../../sandbox/what-agent-left.ts';
import type { Store } from '../../store/store.ts';
import { openedMode, readClosedModes } from '../capture/open-workdir.ts';
import { patientAttempts } from '../late.ts';
import { archiveHeader, contentsHeader } from './archive.ts';
import { createScrubber, type Scrubber } from './scrub.ts';

/** The length of the reason why a snapshot is empty, which is in history. */
const evidenceCharacters = 300;
/** Size of a part of a snapshot. One is in memory at a time. */
const partBytes = 32 * 2 ** 20;

export interface SnapshotOptions {
  /** The secrets of the agent's session, of which nothing is kept. */
  readonly secrets: readonly string[];
  /** Paths that are left out, because temper put them there for the agent. */
  readonly leftOut: readonly string[];
  /** The limit of the changed files together. */
  readonly mostBytes: number;
  /** The number of the activity attempt, from 1. */
  readonly attempt: number;
}

/** The end of a snapshot that exceeds a limit. */
class TooLarge extends Error {}

/** Stores all that an agent changed in its sandbox. */
export function keepSnapshot(
  sandbox: Sandbox,
  store: Store,
  { secrets, leftOut, mostBytes, attempt }: SnapshotOptions,
  signal: AbortSignal,
): Promise<Snapshot> {
  const { kind, changes } = sandbox;
  if (changes === undefined) throw new Error(`expected sandboxes whose changes can be carried, got ${kind}`);
  const keep = async () => {
    const closed = await readClosedModes(sandbox, signal);
    const read = await changes.read(leftOut, signal);
    return keepChanges({ kind, read: withClosedModes(read, closed) }, store, { secrets, mostBytes }, signal);
  };
  return orUnread(sandbox, { attempt, keep }, signal);
}

interface Keeping {
  /** The number of the activity attempt, from 1. */
  readonly attempt: number;
  keep(): Promise<Snapshot>;
}

/** Stores what an agent left, or an empty snapshot that says why it cannot be read. */
export async function orUnread(sandbox: Sandbox, { attempt, keep }: Keeping, signal: AbortSignal): Promise<Snapshot> {
  try {
    return await usingWhatAgentLeft({ sandbox, failedBefore: attempt > patientAttempts }, keep, signal);
  } catch (error) {
    if (!wasEndedInside(error)) throw error;
    return { kind: sandbox.kind, parts: [], entries: 0, bytes: 0, unread: error.message.slice(0, evidenceCharacters) };
  }
}

/** Gives files that the capture of the diff has opened the modes that the agent gave them. One whose mode differs since then keeps it. */
function withClosedModes(read: ReadChanges, closed: ReadonlyMap<string, number>): ReadChanges {
  if (closed.size === 0) return read;
  return {
    ...read,
    async *entries() {
      for await (const { header, content } of read.entries()) {
        const mode = closed.get(header.path);
        const isOpened =
          mode !== undefined &&
          (header.type === 'file' || header.type === 'directory') &&
          header.mode === openedMode(mode, header.type);
        yield { header: isOpened ? { ...header, mode } : header, content };
      }
    },
  };
}

interface Read {
  readonly kind: Snapshot['kind'];
  readonly read: ReadChanges;
}

/** Stores what was read from an agent's sandbox. */
export async function keepChanges(
  { kind, read }: Read,
  store: Store,
  { secrets, mostBytes }: Pick<SnapshotOptions, 'secrets' | 'mostBytes'>,
  signal: AbortSignal,
): Promise<Snapshot> {
  if (read.tooMany) return { kind, parts: [], entries: carriedLimits.files, bytes: 0, above: mostBytes };
  const counted = { entries: 0, bytes: 0 };
  const parts: string[] = [];
  const tar = pack();
  const filling = fill(tar, read, { scrubber: createScrubber(secrets), counted, mostBytes }).catch((error: unknown) => {
    tar.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  });
  const keeping = pipeline(
    Readable.from(tar),
    createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 1 } }),
    async (packed: AsyncIterable<Buffer>) => {
      for await (const part of partsOf(packed)) parts.push((await store.put(part, 'application/zstd')).digest);
    },
    { signal },
  );
  const [filled, kept] = await Promise.allSettled([filling, keeping]);
  if (filled.status === 'rejected' && filled.reason instanceof TooLarge) {
    return { kind, parts: [], ...counted, above: mostBytes };
  }
  if (kept.status === 'rejected') throw kept.reason;
  if (filled.status === 'rejected') throw filled.reason;
  return { kind, parts, ...counted };
}

interface Filling {
  readonly scrubber: Scrubber;
  readonly counted: { entries: number; bytes: number };
  readonly mostBytes: number;
}

async function fill(
  tar: Pack,
  { listings, added, entries }: ReadChanges,
  { scrubber, counted, mostBytes }: Filling,
): Promise<void> {
  for (const piece of piecesOf({ listings, added })) {
    const contents = Buffer.from(scrubber.text(JSON.stringify(piece)));
    await addEntry(tar, contentsHeader(contents.byteLength), Readable.from([contents]));
  }
  for await (const { header, content } of entries()) {
    counted.entries += 1;
    counted.bytes += header.size;
    if (counted.bytes > mostBytes || counted.entries > carriedLimits.files) throw new TooLarge();
    await addEntry(tar, archiveHeader(scrubbed(header, scrubber)), scrubber.content(content));
  }
  tar.finalize();
}

const scrubbed = (header: CarriedEntry['header'], { text }: Scrubber): CarriedEntry['header'] => ({
  ...header,
  path: text(header.path),
  ...(header.target !== undefined && { target: text(header.target) }),
});

/** Yields the bytes in pieces of one size; the last one may be shorter. */
async function* partsOf(bytes: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  let pending: Buffer[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    pending.push(chunk);
    size += chunk.length;
    if (size < partBytes) continue;
    yield Buffer.concat(pending);
    pending = [];
    size = 0;
  }
  if (size > 0) yield Buffer.concat(pending);
}
