import { posix } from 'node:path';
import { isAboveAny, isWithinAny, ownPaths } from '../sandbox/changes.ts';
import type { MemoryDirectory } from '../sandbox/memory-directory.ts';
import { megabytesIn, sharedMemoryOf } from './limits.ts';
import type { AskedDirectory } from './mounts.ts';
import type { Service } from './schema.ts';
import type { Reading, Reject } from './values.ts';

/** The memory that a container uses as files. */
export interface AskedMemory {
  readonly tmpfs: readonly AskedDirectory[];
  /** The size of `/dev/shm`; null if the file names none. */
  readonly sharedMemoryMb: number | null;
}

const sharedMemory = '/dev/shm';

/**
 * Reads the directories in memory of a service, from `tmpfs` and among its mounts, and its shared memory. Owners and modes are
 * left out: every account may write there.
 */
export function memoryOf(given: Service, mounted: readonly AskedDirectory[], reading: Reading): AskedMemory {
  const entries = [given.tmpfs ?? []].flat().map((entry) => readEntry(entry, reading));
  const all = [...new Map([...entries, ...mounted].map((one) => [one.path, one])).values()];
  const shared = all.find(({ path }) => path === sharedMemory);
  return {
    tmpfs: all.filter((one) => one !== shared),
    sharedMemoryMb: sharedMemoryOf(given, reading.fill, reading.reject) ?? shared?.sizeMb ?? null,
  };
}

function readEntry(entry: string, { fill, reject }: Reading): AskedDirectory {
  const [path = '', options = ''] = fill(entry, 'tmpfs').split(':');
  if (!/^\/[^\0\n$]+$/.test(path)) throw reject('tmpfs', 'absolute directories', entry);
  const [, size = ''] = /(?:^|,)size=([^,]*)/.exec(options) ?? [];
  return {
    path: posix.normalize(path).replace(/(?<=.)\/$/, ''),
    // A part of the memory of a host that is not known.
    sizeMb: size === '' || size.endsWith('%') ? null : megabytesIn(size, 'tmpfs', { smallest: 0, reject }),
  };
}

/** Returns directories with their sizes, none of which exceeds the memory of the container. */
export const sizedDirectories = (asked: readonly AskedDirectory[], memoryMb: number): readonly MemoryDirectory[] =>
  asked.map(({ path, sizeMb }) => ({ path, sizeMb: Math.max(1, Math.min(sizeMb ?? memoryMb, memoryMb)) }));

/** Rejects a directory in memory that would hide files that are in the container before it starts. */
export function requireVisible(
  directories: readonly AskedDirectory[],
  files: readonly { readonly target: string }[],
  reject: Reject,
): void {
  for (const { path } of directories) {
    const hidden = files.find(({ target }) => isWithinAny(target, [path]));
    if (hidden !== undefined) throw reject('tmpfs', `no directory in memory over the file ${hidden.target}`, path);
  }
}

/** Directories below which temper puts something only while tests run, when the directory in memory is there. */
const filledLater = ['/tmp'];

/** Returns the path of temper's files that a directory in memory would hide or be part of; undefined if it touches none. */
export function hiddenBy({ path }: AskedDirectory): string | undefined {
  const own = [...ownPaths, '/home/agent', '/logs/agent'].filter((one) => !filledLater.includes(posix.dirname(one)));
  return own.find((one) => isAboveAny(path, [one]) || isWithinAny(path, [one]));
}
