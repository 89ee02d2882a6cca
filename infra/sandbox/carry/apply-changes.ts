import {
  chmodSync,
  constants,
  fchmodSync,
  fchownSync,
  futimesSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  rmSync,
  type Stats,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path/posix';
import { type CarriedEntry, type CarriedHeader, isAboveAny, isWithinAny, type WrittenChanges } from '../changes.ts';
import type { CarryScope } from './scan.ts';

// This file also runs in Pods, from its text, so it imports no package.

const createFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const rewriteFlags = constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** Errors that say that a change does not fit the sandbox, and not that the machine failed. */
const misfits: ReadonlySet<unknown> = new Set([
  'EACCES',
  'EBUSY',
  'EPERM',
  'EROFS',
  'ETXTBSY',
  'EEXIST',
  'EISDIR',
  'ELOOP',
  'ENAMETOOLONG',
  'ENOENT',
  'ENOTDIR',
  'ENOTEMPTY',
  'ENXIO',
]);

interface AppliedScope extends CarryScope {
  /** Directories that are known to lead through no link. An agent may have thousands of files below as many directories. */
  readonly known: Set<string>;
}

/**
 * Makes an agent's changes in a scope: removes the files that the agent removed, and then writes each entry. Follows no link. Has
 * the rights of this process, and sets owners only as root. Returns the reason why a change is impossible, or null.
 */
export async function applyChanges(within: CarryScope, changes: WrittenChanges): Promise<string | null> {
  const scope: AppliedScope = { ...within, known: new Set() };
  let at = '/';
  try {
    for (const path of lostOf(scope, changes)) {
      at = path;
      remove(scope, path);
    }
    const directories: CarriedHeader[] = [];
    for await (const { header, content } of changes.entries) {
      at = header.path;
      if (!isFree(scope, header)) await skip(content);
      else if (header.type === 'directory') {
        makeDirectory(scope, header);
        directories.push(header);
      } else await write(scope, { header, content });
    }
    // The mode and time of a directory come last: the mode may deny writing to its owner, and each file in it changes the time.
    for (const header of directories.reverse()) finish(scope, header);
    return null;
  } catch (error) {
    if (error instanceof Error && 'code' in error && misfits.has(error.code)) return `${at}: ${error.message}`;
    throw error;
  }
}

/** Whether a path may be changed. A link in place of a directory above a fixed path would redirect what is written there. */
const isFree = ({ fixed }: CarryScope, { path, type }: Pick<CarriedHeader, 'path' | 'type'>): boolean =>
  !isWithinAny(path, fixed) && (type === 'directory' || !isAboveAny(path, fixed));

/** Yields the paths to remove: names that directories no longer have, and what is added whole. */
function* lostOf(
  scope: AppliedScope,
  { listings, added }: Pick<WrittenChanges, 'listings' | 'added'>,
): Iterable<string> {
  const free = (path: string): boolean => isFree(scope, { path, type: 'file' });
  for (const { directory, names } of listings) {
    if (!isDirectory(scope, directory)) continue;
    const kept = new Set(names);
    for (const name of readdirSync(scope.root + directory)) {
      const path = directory === '/' ? `/${name}` : `${directory}/${name}`;
      if (!kept.has(name) && free(path)) yield path;
    }
  }
  yield* added.filter((path) => free(path) && isDirectory(scope, dirname(path)));
}

const statOf = ({ root }: CarryScope, path: string): Stats | undefined =>
  lstatSync(root + path, { throwIfNoEntry: false });

/** Whether a path leads to a directory through directories only. */
function isDirectory(scope: AppliedScope, path: string): boolean {
  const found: string[] = [];
  for (let one = path; one !== '/' && !scope.known.has(one); one = dirname(one)) {
    if (statOf(scope, one)?.isDirectory() !== true) return false;
    found.push(one);
  }
  for (const one of found) scope.known.add(one);
  return true;
}

function requireParent(scope: AppliedScope, path: string): void {
  const parent = dirname(path);
  if (isDirectory(scope, parent)) return;
  throw Object.assign(new Error(`${parent} is no directory here`), { code: 'ENOTDIR' });
}

function remove({ root, known }: AppliedScope, path: string): void {
  rmSync(root + path, { recursive: true, force: true });
  // Something else may take the place of a directory, and then the paths below it are unknown, too.
  if (known.has(path)) known.clear();
}

function makeDirectory(scope: AppliedScope, { path }: CarriedHeader): void {
  if (path === '/') return;
  requireParent(scope, path);
  const found = statOf(scope, path);
  if (found?.isDirectory()) {
    // Files are written into the directory before its own mode is set.
    if ((found.mode & 0o700) !== 0o700) tryOwn(() => chmodSync(scope.root + path, (found.mode & 0o7777) | 0o700));
    return;
  }
  remove(scope, path);
  mkdirSync(scope.root + path, 0o700);
}

async function write(scope: AppliedScope, { header, content }: CarriedEntry): Promise<void> {
  const { path, type, target = '' } = header;
  const real = scope.root + path;
  requireParent(scope, path);
  if (type === 'file') {
    await writeFile(scope, { header, content });
    return;
  }
  remove(scope, path);
  if (type === 'symlink') {
    symlinkSync(target, real);
    owned(scope, header, (uid, gid) => lchownSync(real, uid, gid));
    lutimesSync(real, header.mtime, header.mtime);
  } else if (type === 'link') {
    requireParent(scope, target);
    linkSync(scope.root + target, real);
  }
  await skip(content);
}

async function writeFile(scope: AppliedScope, { header, content }: CarriedEntry): Promise<void> {
  const { path, mode, mtime } = header;
  const real = scope.root + path;
  // A file that is not the agent's was rewritten, which changes neither its owner nor its mode.
  const isAgents = isOwn(scope, header);
  if (isAgents) remove(scope, path);
  const file: FileHandle = await open(real, isAgents ? createFlags : rewriteFlags, 0o600);
  try {
    for await (const chunk of content) await file.writeFile(chunk);
    if (isAgents) {
      owned(scope, header, (owner, group) => fchownSync(file.fd, owner, group));
      fchmodSync(file.fd, mode);
      futimesSync(file.fd, mtime, mtime);
    }
  } finally {
    await file.close();
  }
}

/** Sets the owner, the mode and the time of a directory. Those that are not the agent's keep theirs. */
function finish(scope: AppliedScope, header: CarriedHeader): void {
  const { path, mode, mtime } = header;
  if (!isOwn(scope, header) || !isDirectory(scope, path)) return;
  const real = scope.root + path;
  owned(scope, header, (owner, group) => lchownSync(real, owner, group));
  utimesSync(real, mtime, mtime);
  chmodSync(real, mode);
}

/** Whether the agent had all rights on a file. */
const isOwn = ({ all }: CarryScope, { uid }: CarriedHeader): boolean => all === true || uid === 'agent';

/** Gives a file to its owner, which only root can do. */
function owned(
  { uid, grader = uid }: CarryScope,
  header: Pick<CarriedHeader, 'uid' | 'gid' | 'toGrader'>,
  give: (uid: number, gid: number) => void,
): void {
  if (process.getuid?.() !== 0) return;
  const idOf = (id: CarriedHeader['uid']): number => (id === 'agent' ? uid : id);
  give(header.toGrader ? grader : idOf(header.uid), idOf(header.gid));
}

function tryOwn(change: () => void): void {
  try {
    change();
  } catch {
    // The file belongs to another account; if it has to be written and cannot be, the write fails.
  }
}

async function skip(content: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of content) {
    // Only the end matters.
  }
}
