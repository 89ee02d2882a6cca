import { readlinkSync } from 'node:fs';
import { constants, type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path/posix';
import { setImmediate as turn } from 'node:timers/promises';
import { type CarriedEntry, type CarriedHeader, type CarriedOwner, carriedLimits, type Listing } from '../changes.ts';
import { itemsATurn } from '../turns.ts';
import { type CarryScope, type FoundFile, type OpenedModes, openTo, reach, scanFiles, unreadable } from './scan.ts';

// This file also runs in Pods, from its text, so it imports no package.

/** The marks of files by their paths, as they were before the agent began. */
export type Baseline = ReadonlyMap<string, string>;

export interface FoundChanges {
  readonly listings: readonly Listing[];
  readonly added: readonly string[];
  /** Whether the changes exceed the limits. Nothing is listed then. */
  readonly tooMany: boolean;
  /** Yields everything that was added or changed. Directories come before what is in them. */
  entries(): AsyncIterable<CarriedEntry>;
}

const chunkBytes = 256 * 1024;
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Notes the files in a scope as they are. */
export async function noteFiles(scope: CarryScope): Promise<Baseline> {
  const marks = new Map<string, string>();
  for await (const { path, mark } of scan(scope, null)) marks.set(path, mark);
  return marks;
}

/** Returns the paths to look below for changes: where an agent without rights could write nothing, it has changed nothing. */
export const startsOf = (baseline: Baseline): readonly string[] =>
  [...baseline.keys()].filter((path) => path === '/' || !baseline.has(dirname(path)));

/**
 * Finds what differs from a baseline; without one, every file counts as changed. The names in changed directories count, including
 * those of files that are not carried, such as FIFOs.
 */
export async function findChanges(
  scope: CarryScope,
  baseline: Baseline | null,
  limits = carriedLimits,
): Promise<FoundChanges> {
  const listings: Listing[] = [];
  const added: string[] = [];
  const opened: OpenedModes = new Map();
  const entries = () => changedFiles(scope, baseline, opened);
  let [changed, items, characters] = [0, 0, 0];
  for await (const { path, type, mark, names } of scan(scope, opened)) {
    if (baseline?.get(path) === mark) continue;
    changed += 1;
    for (const name of names) characters += name.length;
    items += names.length;
    const isNew = baseline !== null && !baseline.has(path);
    const isAdded = isNew && baseline.has(dirname(path));
    const isListed = !isNew && type === 'directory';
    if (isAdded || isListed) {
      characters += path.length;
      items += 1;
    }
    if (Math.max(changed, items) > limits.files || characters > limits.characters) {
      return { listings: [], added: [], tooMany: true, entries };
    }
    if (isAdded) added.push(path);
    if (isListed) listings.push({ directory: path, names });
  }
  return { listings, added, tooMany: false, entries };
}

async function* changedFiles(
  scope: CarryScope,
  baseline: Baseline | null,
  opened: OpenedModes,
): AsyncIterable<CarriedEntry> {
  /** The first path of each file that has several. */
  const first = new Map<bigint, string>();
  for await (const found of scan(scope, opened)) {
    const { path, type, stat, mark } = found;
    if (baseline?.get(path) === mark) continue;
    const header = headerOf(found, scope, opened);
    if (type === 'file') {
      const other = stat.nlink > 1n ? first.get(stat.ino) : undefined;
      if (stat.nlink > 1n && other === undefined) first.set(stat.ino, path);
      if (other !== undefined) yield { header: { ...header, type: 'link', target: other, size: 0 }, content: none() };
      else yield { header, content: contentOf(scope, found, opened) };
    } else if (type === 'symlink') {
      const target = reach(() => readlinkSync(scope.root + path));
      if (target !== undefined && !target.includes(unreadable))
        yield { header: { ...header, target }, content: none() };
    } else yield { header, content: none() };
  }
}

/** Scans a scope, and lets others have the event loop now and then. */
async function* scan(scope: CarryScope, opened: OpenedModes | null): AsyncIterable<FoundFile> {
  let count = 0;
  for (const found of scanFiles(scope, opened)) {
    if (found !== null) yield found;
    count += 1;
    if (count % itemsATurn === 0) await turn();
  }
}

function headerOf({ path, type, stat }: FoundFile, { uid }: CarryScope, opened: OpenedModes): CarriedHeader {
  const ownerOf = (id: bigint): CarriedOwner => (id === BigInt(uid) ? 'agent' : Number(id));
  return {
    path,
    type,
    mode: opened.get(path) ?? Number(stat.mode & 0o7777n),
    uid: ownerOf(stat.uid),
    gid: ownerOf(stat.gid),
    mtime: new Date(Number(stat.mtimeMs)),
    size: type === 'file' ? Number(stat.size) : 0,
  };
}

/** Yields as many bytes as a file had when it was found. */
async function* contentOf(scope: CarryScope, found: FoundFile, opened: OpenedModes): AsyncIterable<Uint8Array> {
  const file = await openFile(scope, found, opened);
  let left = Number(found.stat.size);
  try {
    while (left > 0) {
      const buffer = Buffer.alloc(Math.min(left, chunkBytes));
      const bytesRead = file === null ? 0 : (await file.read(buffer, 0, buffer.length)).bytesRead;
      // The reader of a file that has become shorter still gets the announced number of bytes.
      const chunk = bytesRead === 0 ? buffer : buffer.subarray(0, bytesRead);
      left -= chunk.length;
      yield chunk;
    }
  } finally {
    await file?.close();
  }
}

/** Opens a file. Returns null if it is no longer the one that was found. */
async function openFile(scope: CarryScope, { path, stat }: FoundFile, opened: OpenedModes): Promise<FileHandle | null> {
  const tryOpen = () => open(scope.root + path, readFlags).catch(() => null);
  let file = await tryOpen();
  if (file === null) {
    openTo(scope, path, stat, opened);
    file = await tryOpen();
  }
  if (file === null) return null;
  const { ino } = await file.stat({ bigint: true });
  if (ino === stat.ino) return file;
  await file.close();
  return null;
}

async function* none(): AsyncIterable<Uint8Array> {
  // Only files have content.
}
