import { dirname } from 'node:path/posix';
import { isAboveAny, isWithinAny } from '../changes.ts';
import { eachInTurns, filterInTurns } from '../turns.ts';

/** One line of `docker diff`: 0 changed, 1 added, 2 deleted. */
export interface DiffLine {
  readonly Path: string;
  readonly Kind: number;
}

/** The archives to ask the daemon for, which together hold the changed files of a container. */
export interface ChangesPlan {
  /** Paths of the image that were changed. Those that are directories may have lost something. */
  readonly changed: readonly string[];
  /** Paths that the image does not have, without those in another one of them. */
  readonly added: readonly string[];
  readonly archives: readonly PlannedArchive[];
  /** Whether a path in an archive is part of the changes. */
  isWanted(path: string): boolean;
}

export interface PlannedArchive {
  readonly path: string;
  /** Whether its first entry is all that is wanted if that is a directory. */
  readonly first: boolean;
}

/**
 * The numbers of changed files, in a directory itself and anywhere below it, from which one archive of the directory is asked for
 * instead of one of each file. An archive costs the daemon a mount, which takes as long as reading some megabytes.
 */
const together = { inside: 6, below: 64 } as const;

/** Plans the archives that hold the changes of a container, without the paths in `leftOut`. */
export async function planChanges(lines: readonly DiffLine[], leftOut: readonly string[]): Promise<ChangesPlan> {
  const parents = new Set<string>();
  const present: DiffLine[] = [];
  const wholes = new Set<string>();
  await eachInTurns(lines, (line) => {
    const { Path, Kind } = line;
    if (isWithinAny(Path, leftOut)) return;
    parents.add(dirname(Path));
    if (Kind === 2) return;
    present.push(line);
    // An added directory that holds something of temper's own is taken piece by piece.
    if (Kind === 1 && !isAboveAny(Path, leftOut)) wholes.add(Path);
  });
  const inWhole = (path: string): boolean => {
    for (const one of above(path)) if (wholes.has(one)) return true;
    return false;
  };
  const isDirectory = (path: string): boolean => parents.has(path) && !wholes.has(path);

  const outer = new Set<string>();
  const inside = new Map<string, number>();
  const below = new Map<string, number>();
  const count = (counts: Map<string, number>, path: string): unknown => counts.set(path, (counts.get(path) ?? 0) + 1);
  await eachInTurns(present, ({ Path }) => {
    if (inWhole(Path)) return;
    outer.add(Path);
    if (isDirectory(Path)) return;
    count(inside, dirname(Path));
    for (const one of above(Path)) count(below, one);
  });
  const isTogether = (path: string): boolean =>
    (inside.get(path) ?? 0) >= together.inside || (below.get(path) ?? 0) >= together.below;
  const archives = new Map<string, PlannedArchive>();
  await eachInTurns(outer, (path) => {
    const shared = [path, ...above(path)].findLast((one) => isDirectory(one) && isTogether(one));
    if (shared === undefined) archives.set(path, { path, first: !wholes.has(path) });
    else archives.set(shared, { path: shared, first: false });
  });
  return {
    changed: ['/', ...(await filterInTurns(outer, (path) => !wholes.has(path)))],
    added: await filterInTurns(outer, (path) => wholes.has(path)),
    archives: [...archives.values()],
    isWanted: (path) => !isWithinAny(path, leftOut) && (outer.has(path) || inWhole(path)),
  };
}

/** Yields the directories above a path, except the root, the nearest first. */
function* above(path: string): Iterable<string> {
  for (let at = dirname(path); at !== '/' && at !== '.'; at = dirname(at)) yield at;
}
