import { Readable } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';
import type { Header } from 'tar-stream';
import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { Flag } from '../../../workflows/contracts/flags.ts';
import type { Snapshot } from '../../../workflows/contracts/snapshot.ts';
import { joinContents } from '../../sandbox/carry/contents.ts';
import type { CarriedEntry, CarriedHeader, CarriedOwner, Contents, WrittenChanges } from '../../sandbox/changes.ts';
import { collect } from '../../sandbox/files.ts';
import { type TarEntry, tarEntries } from '../../sandbox/tar-entries.ts';
import type { Store } from '../../store/store.ts';
import { unreadFlag } from '../flags/capture.ts';

/*
 * The archive of a snapshot: a tar whose first entries say what was added and what is left in changed directories, a piece each. The
 * others are the files, below `root`.
 */

const contentsName = 'contents.json';
const root = 'root';
/** Stands for the agent's uid, which no account of an image has. */
const agentId = 119_999;

const contents = z.object({
  listings: z.array(z.object({ directory: z.string(), names: z.array(z.string()) })),
  added: z.array(z.string()),
});

const idOf = (owner: CarriedOwner): number => (owner === 'agent' ? agentId : owner);
const ownerOf = (id: number): CarriedOwner => (id === agentId ? 'agent' : id);

export const contentsHeader = (size: number) => ({ name: contentsName, type: 'file', mode: 0o644, size }) as const;

export function archiveHeader({ path, type, mode, uid, gid, mtime, target, size }: CarriedHeader) {
  return {
    name: `${root}${path}${type === 'directory' ? '/' : ''}`,
    type,
    mode,
    uid: idOf(uid),
    gid: idOf(gid),
    mtime,
    size,
    ...(target !== undefined && { linkname: target }),
  };
}

/** Whether a snapshot holds what the agent changed: it is neither above the limit nor unreadable. */
export const isStored = ({ above, unread }: Pick<Snapshot, 'above' | 'unread'>): boolean =>
  above === undefined && unread === undefined;

/** Returns the flag of a snapshot that was stored empty, whose evidence is why; null for a whole one. */
export function flagEmpty({ above, unread }: Snapshot, tooLarge: (above: number) => string): Flag | null {
  if (above !== undefined) return { trick: 'bulk', evidence: tooLarge(above) };
  return unread === undefined ? null : unreadFlag(unread);
}

/** Opens the archive of a snapshot. Throws BlobMissing if the store has lost a part. */
export async function openSnapshot(store: Store, { parts }: Pick<Snapshot, 'parts'>): Promise<WrittenChanges> {
  if (parts.length === 0) return { listings: [], added: [], entries: Readable.from([]) };
  const packed = Readable.from(partsIn(store, parts));
  const unpacked = createZstdDecompress();
  packed.on('error', (error) => unpacked.destroy(error));
  packed.pipe(unpacked);
  const entries = tarEntries(unpacked)[Symbol.asyncIterator]();
  const joined = joinContents();
  let first = await entries.next();
  if (first.done === true || first.value.header.name !== contentsName) {
    throw new TemperFailure(
      'BlobMissing',
      `expected the beginning of a snapshot in the blob ${parts[0]}, got something else`,
    );
  }
  for (; first.done !== true && first.value.header.name === contentsName; first = await entries.next()) {
    joined.add(await pieceIn(first.value));
  }
  const { listings, added } = joined;
  return { listings, added, entries: carried(first, { [Symbol.asyncIterator]: () => entries }) };
}

async function pieceIn({ content }: TarEntry): Promise<Contents> {
  return contents.parse(JSON.parse((await collect(Readable.from(content))).toString()));
}

async function* partsIn(store: Store, parts: readonly string[]): AsyncIterable<Uint8Array> {
  for (const digest of parts) yield store.get(digest);
}

async function* carried(first: IteratorResult<TarEntry>, rest: AsyncIterable<TarEntry>): AsyncIterable<CarriedEntry> {
  const carriedOf = ({ header, content }: TarEntry): CarriedEntry => ({ header: carriedHeader(header), content });
  if (first.done === true) return;
  yield carriedOf(first.value);
  for await (const entry of rest) yield carriedOf(entry);
}

function carriedHeader({ name, type, mode, uid, gid, mtime, linkname, size }: Header): CarriedHeader {
  return {
    path: name.slice(root.length).replace(/(?<=.)\/$/, ''),
    type: type as CarriedHeader['type'],
    mode,
    uid: ownerOf(uid),
    gid: ownerOf(gid),
    mtime,
    size,
    ...((type === 'link' || type === 'symlink') && { target: linkname }),
  };
}
