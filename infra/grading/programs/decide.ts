import { type BasePrograms, isTrackedFile, type KeptFile, type ProgramDirectory } from './base-programs.ts';

/** The state of the agent's directories once its work is in the sandbox. */
export interface NowPrograms {
  readonly directories: readonly ProgramDirectory[];
  readonly files: ReadonlyMap<string, KeptFile>;
}

export interface Decision {
  /** Files to put back. */
  readonly put: ReadonlyMap<string, KeptFile>;
  /** Paths to remove. */
  readonly remove: readonly string[];
  /** The changes that were found, for readers, the most telling first. */
  readonly evidence: readonly string[];
}

/**
 * Decides what happens to programs that the tests would find in directories of the agent's. A program of the base that the task's
 * repository does not track is put back. An added one is removed if a later directory has one of its name. Others are kept, and
 * named. `isFree` says which paths the task leaves to the agent. Pure.
 */
export function decide(base: BasePrograms, now: NowPrograms, isFree: (path: string) => boolean): Decision {
  const put = new Map<string, KeptFile>();
  const remove = new Set<string>();
  const kept: string[] = [];
  const restore = (path: string): void => {
    const file = base.files.get(path);
    if (file !== undefined) put.set(path, file);
  };
  const own = base.directories.flatMap((directory, index) => (directory.isOwn ? [{ directory, index }] : []));
  for (const [order, { directory, index }] of own.entries()) {
    const found = now.directories[order];
    const isLater = laterNames(base, index);
    const isLed = found?.real != null && found.real !== (directory.real ?? directory.path);
    const at = isLed || directory.real === null ? directory.path : directory.real;
    const had = new Set(directory.names);
    for (const name of directory.names) {
      const path = `${directory.real}/${name}`;
      const isSame = !isLed && equals(base.files.get(path), now.files.get(path));
      if (isSame || isFree(path)) continue;
      if (!isTracked(base, { directory, path, isLater: isLater(name) })) restore(path);
      else if (isLed || now.files.has(path)) kept.push(`${path} was changed`);
    }
    for (const name of found?.names ?? []) {
      if (had.has(name) && !isLed) continue;
      const path = `${at}/${name}`;
      if (isFree(path)) continue;
      if (isLater(name)) remove.add(path);
      else if (!had.has(name)) kept.push(`${path} was added`);
    }
  }
  for (const path of base.beyond) {
    const isSame = equals(base.files.get(path), now.files.get(path));
    const isTasks = base.hasRepository && isTrackedFile(base, path);
    if (!isSame && !isFree(path) && !isTasks) restore(path);
  }
  const changes = [
    ...[...remove].map((path) => `${path} was added, and was removed before the tests`),
    ...[...put.keys()].map((path) => `${path} was changed, and was restored before the tests`),
  ];
  return { put, remove: [...remove], evidence: [...changes, ...kept] };
}

/** Returns a function that says whether a later directory of the PATH has a program of a name. */
function laterNames({ directories }: BasePrograms, index: number): (name: string) => boolean {
  const names = new Set(directories.slice(index + 1).flatMap((later) => later.names));
  return (name) => names.has(name);
}

interface BaseProgram {
  readonly directory: ProgramDirectory;
  readonly path: string;
  readonly isLater: boolean;
}

/**
 * Whether the task's repository tracks a program. Without a repository of the task's own, all files in the base commit count as
 * tracked, except in directories of packages, and except programs that a later directory has, too.
 */
function isTracked(base: BasePrograms, { directory, path, isLater }: BaseProgram): boolean {
  if (!base.hasRepository && (directory.isPackage || isLater)) return false;
  return isTrackedFile(base, path);
}

function equals(one: KeptFile | undefined, other: KeptFile | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one.target !== other.target) return false;
  return one.target !== null || ((one.mode & 0o111) === (other.mode & 0o111) && one.bytes.equals(other.bytes));
}
