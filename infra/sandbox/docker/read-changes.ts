import { dirname, join } from 'node:path/posix';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import type { Header } from 'tar-stream';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import {
  type CarriedHeader,
  type CarriedOwner,
  carriedLimits,
  ownPaths,
  type ReadChanges,
  tooManyChanges,
} from '../changes.ts';
import { SandboxFailure } from '../failure.ts';
import { ListKilled, listDirectories } from '../shell/listing.ts';
import type { Shell } from '../shell/shell.ts';
import { bytesOf, drain, type TarEntry, tarEntries } from '../tar-entries.ts';
import { filterInTurns } from '../turns.ts';
import { accountFiles, withoutUid } from './account-files.ts';
import { type ListLimits, readLines } from './changed-lines.ts';
import { callDaemon, orIfMissing } from './daemon.ts';
import { listMountPoints } from './device-mounts.ts';
import { type DiffLine, type PlannedArchive, planChanges } from './plan-changes.ts';

const inspected = z.object({
  Mounts: z.array(z.object({ Destination: z.string() })).default([]),
  HostConfig: z
    .object({ DeviceRequests: z.array(z.unknown()).nullish(), Tmpfs: z.record(z.string(), z.string()).nullish() })
    .default({}),
});
/** The character that stands for bytes that are no text. Such a name cannot be asked for. */
const unreadable = '\uFFFD';
const types: Readonly<Record<string, CarriedHeader['type']>> = {
  file: 'file',
  'contiguous-file': 'file',
  directory: 'directory',
  symlink: 'symlink',
  link: 'link',
  fifo: 'fifo',
};

export interface OwnPaths {
  /** The paths that temper fills in a container: the same in each, and its mounts. */
  readonly own: readonly string[];
  /** Whether the container has devices, so that hooks of their vendor have put files into it. */
  readonly hasDevices: boolean;
}

export async function ownPathsOf(container: Docker.Container, shell: Shell, signal: AbortSignal): Promise<OwnPaths> {
  const { Mounts, HostConfig } = inspected.parse(await callDaemon(() => container.inspect()));
  const hasDevices = (HostConfig.DeviceRequests ?? []).length > 0;
  const ofDevices = hasDevices ? await listMountPoints(shell, signal) : [];
  const mounts = [...Mounts.map(({ Destination }) => Destination), ...Object.keys(HostConfig.Tmpfs ?? {})];
  return { own: [...ownPaths, ...mounts, ...ofDevices], hasDevices };
}

/** The limits of the daemon's list of changed paths, which an agent makes as long as it likes. */
const listLimits: ListLimits = { bytes: carriedLimits.characters, lines: carriedLimits.files };

/** Lists the changed paths of a container; null if the list is longer than an agent's work ever is. */
export async function listChanged(
  container: Docker.Container,
  limits = listLimits,
): Promise<readonly DiffLine[] | null> {
  return readLines(bytesOf(await readFiles(() => openList(container))), limits);
}

/** Asks the daemon for the list as a stream: the client's own call reads it as one text, and one that is too long ends this process. */
function openList({ id, modem }: Docker.Container): Promise<Readable> {
  const statusCodes = { 200: true, 404: 'no such container', 500: 'server error' };
  const request = { path: `/containers/${id}/changes`, method: 'GET', isStream: true, statusCodes };
  return new Promise((resolve, reject) => {
    modem.dial(request, (error: unknown, list: Readable) => (error ? reject(error) : resolve(list)));
  });
}

/** Makes a call that reads a container's files. If the daemon cannot read a path because of its length, the agent has made it so. */
async function readFiles<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await callDaemon(call);
  } catch (cause) {
    if (!/file name too long/i.test(errorMessage(cause))) throw cause;
    const text =
      'the daemon cannot read the files of a sandbox, since its agent left a path that is longer than the kernel accepts';
    throw new SandboxFailure('SandboxLost', text, { cause, loss: 'ended-inside' });
  }
}

/** Reads what differs between a container and its image. The daemon itself packs the files, so no program inside is trusted. */
export async function readChanges(
  container: Docker.Container,
  shell: Shell,
  leftOut: readonly string[],
  signal: AbortSignal,
): Promise<ReadChanges> {
  const { own } = await ownPathsOf(container, shell, signal);
  const lines = await listChanged(container);
  if (lines === null) return tooManyChanges;
  const named = await filterInTurns(lines, ({ Path }) => !Path.includes(unreadable));
  const plan = await planChanges(named, [...own, ...leftOut]);
  const listings = await listDirectories(shell, plan.changed, signal).catch((error: unknown) => {
    throw error instanceof ListKilled ? fullMemory(shell.name, error) : error;
  });
  if (listings === null) return tooManyChanges;
  const agent = shell.uidOf('agent');
  return {
    listings,
    added: plan.added,
    async *entries() {
      for (const archive of plan.archives) {
        signal.throwIfAborted();
        for await (const { header: found, content } of entriesOf(container, archive)) {
          const header = carriedHeader(found, dirname(archive.path), agent);
          if (header === null || !plan.isWanted(header.path)) await drain(content);
          else yield accountFiles.has(header.path) ? await withoutUid({ header, content }, agent) : { header, content };
          if (archive.first && header?.type === 'directory') break;
        }
      }
    },
  };
}

/** The failure of a sandbox in which no small program runs although the agent has ended: only what it left can fill the memory. */
function fullMemory(sandbox: string, cause: Error): SandboxFailure {
  const text = `the files of sandbox ${sandbox} could not be read, since what its agent has left fills its memory`;
  return new SandboxFailure('SandboxLost', text, { cause, loss: 'out-of-memory' });
}

/** Yields the entries of one archive; none if the path is gone. Ends the daemon's answer when the caller leaves. */
async function* entriesOf(container: Docker.Container, { path }: PlannedArchive): AsyncIterable<TarEntry> {
  const answer = await readFiles(() => container.getArchive({ path })).catch(orIfMissing);
  if (answer === undefined) return;
  try {
    yield* tarEntries(bytesOf(answer));
  } finally {
    if ('destroy' in answer && typeof answer.destroy === 'function') answer.destroy();
  }
}

/** Returns the entry of an archive below a directory as it is carried; null for what is not: devices, names that are no text. */
function carriedHeader(header: Header, directory: string, agent: number): CarriedHeader | null {
  const type = types[header.type ?? 'file'];
  const target = header.linkname ?? undefined;
  if (type === undefined || `${header.name}${target ?? ''}`.includes(unreadable)) return null;
  const ownerOf = (id: number | undefined): CarriedOwner => (id === agent ? 'agent' : (id ?? 0));
  return {
    path: join(directory, header.name).replace(/(?<=.)\/$/, ''),
    type,
    mode: (header.mode ?? 0) & 0o7777,
    uid: ownerOf(header.uid),
    gid: ownerOf(header.gid),
    mtime: header.mtime ?? new Date(0),
    size: header.size ?? 0,
    ...(target !== undefined && type === 'link' && { target: join(directory, target) }),
    ...(target !== undefined && type === 'symlink' && { target }),
  };
}
