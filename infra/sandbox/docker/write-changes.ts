import { join } from 'node:path/posix';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { type Pack, pack } from 'tar-stream';
import {
  type CarriedEntry,
  type CarriedHeader,
  type CarriedOwner,
  isAboveAny,
  isWithinAny,
  type Listing,
  type WrittenChanges,
} from '../changes.ts';
import { SandboxFailure } from '../failure.ts';
import { listDirectories, removePaths } from '../shell/listing.ts';
import type { Shell } from '../shell/shell.ts';
import { addEntry, drain } from '../tar-entries.ts';
import { filterInTurns } from '../turns.ts';
import { accountFiles, withUid } from './account-files.ts';
import { callDaemon } from './daemon.ts';
import { ownPathsOf } from './read-changes.ts';

/**
 * Writes carried changes into a container of the same image: first it loses what the other one had lost, by the image's own
 * programs, and then the daemon unpacks the files. Returns why that is impossible, or null.
 */
export async function writeChanges(
  container: Docker.Container,
  shell: Shell,
  changes: WrittenChanges,
  signal: AbortSignal,
): Promise<string | null> {
  const { own: fixed, hasDevices } = await ownPathsOf(container, shell, signal);
  const isFree = (path: string): boolean => !isWithinAny(path, fixed) && !isAboveAny(path, fixed);
  const lost = await findLost(shell, changes.listings, signal);
  const removed = await filterInTurns([...lost, ...changes.added], isFree);
  // Hooks of devices put the same files into both containers, and no account may remove all of them; the daemon writes over them.
  const mayStay = new Set(hasDevices ? changes.added : []);
  const left = (await removePaths(shell, removed, signal)).filter((path) => !mayStay.has(path));
  if (left.length > 0) return `${left.slice(0, 5).join(', ')} could not be removed`;
  const [agent, grader] = [shell.uidOf('agent'), shell.uidOf('grader')];
  await send(container, (tar) => fill(tar, changes.entries, { agent, grader, fixed }), signal);
  return null;
}

/** Sends the daemon a tar while it is filled. Rejects with the failure that came first. */
async function send(
  container: Docker.Container,
  fillTar: (tar: Pack) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const tar = pack();
  const sent = Readable.from(tar);
  const failed = new AbortController();
  const fail = (error: unknown): void => failed.abort(error);
  sent.on('error', fail);
  const filling = fillTar(tar).catch((error: unknown) => {
    fail(error);
    tar.destroy(error instanceof Error ? error : new Error(String(error)));
  });
  const abortSignal = AbortSignal.any([signal, failed.signal]);
  const putting = callDaemon(() => container.putArchive(sent, { path: '/', abortSignal })).catch((error: unknown) => {
    fail(error);
    sent.destroy();
  });
  await Promise.all([filling, putting]);
  signal.throwIfAborted();
  failed.signal.throwIfAborted();
}

/** Finds what these directories have here and had not there. */
async function findLost(shell: Shell, listings: readonly Listing[], signal: AbortSignal): Promise<readonly string[]> {
  const had = new Map(listings.map(({ directory, names }) => [directory, new Set(names)]));
  const here = await listDirectories(shell, [...had.keys()], signal);
  if (here === null)
    throw new SandboxFailure('Internal', `the names in ${had.size} directories of ${shell.name} are too many`);
  return here.flatMap(({ directory, names }) =>
    names.filter((name) => had.get(directory)?.has(name) === false).map((name) => join(directory, name)),
  );
}

interface Filling {
  readonly agent: number;
  readonly grader: number;
  readonly fixed: readonly string[];
}

async function fill(tar: Pack, entries: AsyncIterable<CarriedEntry>, filling: Filling): Promise<void> {
  const { agent, fixed } = filling;
  for await (const entry of entries) {
    const { path, type } = entry.header;
    // A link in the place of a directory of temper's own would lead its files elsewhere.
    if (isWithinAny(path, fixed) || (type !== 'directory' && isAboveAny(path, fixed))) {
      await drain(entry.content);
      continue;
    }
    const { header, content } = accountFiles.has(path) ? await withUid(entry, agent) : entry;
    await addEntry(tar, tarHeader(header, filling), content);
  }
  tar.finalize();
}

function tarHeader(header: CarriedHeader, { agent, grader }: Pick<Filling, 'agent' | 'grader'>) {
  const { path, type, mode, uid, gid, mtime, target, size, toGrader } = header;
  const idOf = (owner: CarriedOwner): number => (owner === 'agent' ? agent : owner);
  const name = path.slice(1);
  return {
    name: type === 'directory' ? `${name}/` : name,
    type,
    mode,
    uid: toGrader ? grader : idOf(uid),
    gid: idOf(gid),
    mtime,
    size,
    ...(target !== undefined && { linkname: type === 'link' ? target.slice(1) : target }),
  };
}
