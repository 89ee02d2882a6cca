import { type BigIntStats, chmodSync, lstatSync, opendirSync } from 'node:fs';
import { carriedLimits, isWithinAny } from '../changes.ts';

// This file also runs in Pods, from its text, so it imports no package.

/** A part of a file system that an agent may have changed. */
export interface CarryScope {
  /** The directory of this machine that is the sandbox's `/`; empty in the sandbox itself. */
  readonly root: string;
  /** The agent's uid. */
  readonly uid: number;
  /** The grader's uid; absent where files cannot be given to it. */
  readonly grader?: number;
  /** The paths to look below. */
  readonly starts: readonly string[];
  /** Paths that are neither read nor written, nor what is below them. */
  readonly fixed: readonly string[];
  /** Set if the agent is root, which may have changed the files of every owner. */
  readonly all?: true;
}

/** A file, directory or symlink that the agent owns, or that every account may write. If the agent is root, any of them. */
export interface FoundFile {
  readonly path: string;
  readonly type: 'file' | 'directory' | 'symlink';
  readonly stat: BigIntStats;
  /** A digest that differs once the file was changed, since no account sets the time of a change itself. */
  readonly mark: string;
  /** The names in a directory; empty for others. */
  readonly names: readonly string[];
}

/** The character that stands for bytes that are no text. Files with such names are left out. */
export const unreadable = '\uFFFD';
/** The longest path that is carried; the kernel takes 4096 bytes, with the directory of a local sandbox before it. */
const longestPath = 3_500;
const writableForAll = 0o002n;
const ownerMayAll = 0o700n;
/** Errors of a file that this account cannot reach, or whose path is longer than the kernel takes. */
const unreachable: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'ENOENT', 'ENAMETOOLONG', 'ELOOP', 'ENOTDIR']);

/**
 * The modes that the agent's own directories and files had before they were opened, because they denied access even to the agent.
 */
export type OpenedModes = Map<string, number>;

/**
 * Yields the files in a scope, each directory before what is in it, without following links, and null for each that is left out and
 * for each name in a directory, so that a caller knows what it has cost. With `opened`, directories that are closed to the agent itself are opened, and noted there.
 *
 * Paths are used as they are, because nothing runs that could replace a directory by a link meanwhile.
 */
export function* scanFiles(scope: CarryScope, opened: OpenedModes | null): Iterable<FoundFile | null> {
  for (const start of scope.starts) {
    const found = yield* look(scope, start, null, opened);
    if (found === null) continue;
    if (found.isTheirs) yield found.file;
    const open: OpenDirectory[] = [openDirectory(found.file)];
    for (let at = open.at(-1); at !== undefined; at = open.at(-1)) {
      const name = at.names[at.next];
      at.next += 1;
      if (name === undefined) open.pop();
      else {
        const inside = yield* look(scope, `${at.path === '/' ? '' : at.path}/${name}`, at.device, opened);
        yield inside?.isTheirs ? inside.file : null;
        if (inside?.file.type === 'directory') open.push(openDirectory(inside.file));
      }
    }
  }
}

/** A directory whose files are being looked at. */
interface OpenDirectory {
  readonly path: string;
  readonly device: bigint;
  readonly names: readonly string[];
  next: number;
}

const openDirectory = ({ path, stat, names }: FoundFile): OpenDirectory => ({ path, device: stat.dev, names, next: 0 });

/** Looks at one file. Returns null for what is left out: fixed paths, other types, and directories of another device. */
function* look(
  scope: CarryScope,
  path: string,
  device: bigint | null,
  opened: OpenedModes | null,
): Generator<null, { readonly file: FoundFile; readonly isTheirs: boolean } | null> {
  if (path.length > longestPath || isWithinAny(path, scope.fixed)) return null;
  const stat = reach(() => lstatSync(scope.root + path, { bigint: true }));
  const type = stat && typeOf(stat);
  if (!stat || !type) return null;
  // What is mounted belongs to someone else.
  if (type === 'directory' && device !== null && stat.dev !== device) return null;
  const names = type === 'directory' ? yield* namesIn(scope, path, stat, opened) : [];
  return { file: { path, type, stat, mark: markOf(stat), names }, isTheirs: isTheirs(stat, type, scope) };
}

const isTheirs = (stat: BigIntStats, type: FoundFile['type'], { uid, all }: CarryScope): boolean =>
  all === true || stat.uid === BigInt(uid) || (type !== 'symlink' && (stat.mode & writableForAll) !== 0n);

function typeOf(stat: BigIntStats): FoundFile['type'] | undefined {
  if (stat.isFile()) return 'file';
  if (stat.isDirectory()) return 'directory';
  return stat.isSymbolicLink() ? 'symlink' : undefined;
}

const markOf = ({ ino, ctimeNs, size, mode }: BigIntStats): string => `${ino}:${ctimeNs}:${size}:${mode}`;

/** Lists a directory one name after another, since there may be millions: a few more than are carried will do. */
function* namesIn(
  scope: CarryScope,
  path: string,
  stat: BigIntStats,
  opened: OpenedModes | null,
): Generator<null, readonly string[]> {
  const isClosed = stat.uid === BigInt(scope.uid) && (stat.mode & ownerMayAll) !== ownerMayAll;
  if (isClosed && opened !== null) openTo(scope, path, stat, opened);
  const open = reach(() => opendirSync(scope.root + path));
  if (open === undefined) return [];
  const names: string[] = [];
  try {
    for (let entry = open.readSync(); entry !== null && names.length <= carriedLimits.files; entry = open.readSync()) {
      if (!entry.name.includes(unreadable)) names.push(entry.name);
      yield null;
    }
  } finally {
    open.closeSync();
  }
  return names;
}

/** Gives the agent all rights on its own file, and notes the mode that the file had. */
export function openTo({ root }: CarryScope, path: string, { mode }: BigIntStats, opened: OpenedModes): void {
  if (!opened.has(path)) opened.set(path, Number(mode & 0o7777n));
  reach(() => chmodSync(root + path, Number((mode & 0o7777n) | ownerMayAll)));
}

/** Returns what a call returns; undefined if the file cannot be reached. */
export function reach<Result>(call: () => Result): Result | undefined {
  try {
    return call();
  } catch (error) {
    if (error instanceof Error && 'code' in error && unreachable.has(error.code)) return undefined;
    throw error;
  }
}
