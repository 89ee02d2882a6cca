import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { errorCode, FileRefused } from '../failure.ts';
import { type FileEntry, relativeSegments } from '../files.ts';

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

// Files below a directory with hostile content are read and written here without following any symlink. Each step opens one name
// relative to a directory that is already open (`/proc/self/fd/N/name` with O_NOFOLLOW), so that a concurrent rename or link can't
// redirect it to the outside. FIFOs are rejected without blocking. A caller without root has no more rights here than the content's
// owner, who may have closed a directory to itself.

const directoryFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const createFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

const nameIn = (directory: number, name: string): string => `/proc/self/fd/${directory}/${name}`;

/** Runs `use` with a descriptor of the directory. Creates missing directories if an owner for them is given. */
export function withDirectory<T>(
  root: string,
  segments: readonly string[],
  owner: Owner | undefined,
  use: (directory: number) => T,
): T {
  return below(openSync(root, directoryFlags), segments, owner, use);
}

/** Runs `use` with a descriptor of a directory below an open one, which is closed in any case. */
function below<T>(
  open: number,
  segments: readonly string[],
  owner: Owner | undefined,
  use: (directory: number) => T,
): T {
  let directory = open;
  try {
    for (const name of segments) {
      const next = openDirectory(directory, name, owner);
      closeSync(directory);
      directory = next;
    }
    return use(directory);
  } finally {
    closeSync(directory);
  }
}

/** Reads one regular file of at most `maxBytes`. */
export function readFileSafely(root: string, path: string, maxBytes: number): Buffer {
  const segments = relativeSegments(path);
  return withDirectory(root, segments.slice(0, -1), undefined, (directory) => {
    const file = attempt(path, () => openSync(nameIn(directory, segments.at(-1) ?? ''), readFlags));
    try {
      const { size } = requireRegular(file, path);
      if (size > maxBytes) {
        throw new FileRefused('too-large', path, `expected at most ${maxBytes} bytes in ${path}, got ${size}`);
      }
      return readUpTo(file, size);
    } finally {
      closeSync(file);
    }
  });
}

/** Writes one file, replacing an existing one. */
export function writeFileSafely(directory: number, path: string, entry: FileEntry, owner: Owner): void {
  const segments = relativeSegments(path);
  const again = attempt(path, () => openSync(nameIn(directory, '.'), directoryFlags));
  below(again, segments.slice(0, -1), owner, (parent) => {
    const target = nameIn(parent, segments.at(-1) ?? '');
    const file = attempt(path, () => {
      rmSync(target, { force: true });
      return openSync(target, createFlags, 0o600);
    });
    try {
      writeFileSync(file, entry.bytes);
      fchownSync(file, owner.uid, owner.gid);
      fchmodSync(file, entry.mode & 0o7777);
    } finally {
      closeSync(file);
    }
  });
}

function openDirectory(parent: number, name: string, owner: Owner | undefined): number {
  const path = nameIn(parent, name);
  try {
    return openSync(path, directoryFlags);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' || !owner) throw refusal(name, error);
  }
  attempt(name, () => mkdirSync(path, 0o755));
  const made = attempt(name, () => openSync(path, directoryFlags));
  fchownSync(made, owner.uid, owner.gid);
  return made;
}

function requireRegular(file: number, path: string): { readonly size: number } {
  const stat = fstatSync(file);
  if (!stat.isFile()) throw new FileRefused('not-a-file', path, `expected a regular file at ${path}, got another kind`);
  return stat;
}

function readUpTo(file: number, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  let filled = 0;
  while (filled < size) {
    const got = readSync(file, bytes, filled, size - filled, filled);
    if (got === 0) break;
    filled += got;
  }
  return bytes.subarray(0, filled);
}

function attempt<T>(path: string, effect: () => T): T {
  try {
    return effect();
  } catch (error) {
    throw refusal(path, error);
  }
}

/** Turns an error that the tree's content caused into a `FileRefused`; an error of the host is returned unchanged. */
function refusal(path: string, error: unknown): unknown {
  const cause = { cause: error };
  switch (errorCode(error)) {
    case 'ENOENT':
      return new FileRefused('missing', path, `there is no file at ${path}`, cause);
    case 'ELOOP':
    case 'ENOTDIR':
      return new FileRefused('outside', path, `expected no symlink on the way to ${path}, got one`, cause);
    case 'EACCES':
      return new FileRefused('outside', path, `expected rights for its owner on the way to ${path}, got none`, cause);
    case 'EISDIR':
    case 'ENXIO':
    case 'EEXIST':
    case 'ERR_FS_EISDIR':
      return new FileRefused('not-a-file', path, `expected a regular file at ${path}, got another kind`, cause);
    default:
      return error;
  }
}
