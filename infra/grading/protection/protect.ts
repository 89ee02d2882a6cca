import { joinParts, type PatchPart, patchParts } from '../patch/patch-parts.ts';
import { matcher } from './patterns.ts';
import { sectionedFiles } from './sections.ts';

/** A patch without changes to the task's own files. Names are latin-1. */
export interface Protected {
  readonly patch: Uint8Array;
  /** Paths whose change is left out. */
  readonly restored: readonly string[];
  /** Files that belong to the task in part: they are merged after the patch is applied. */
  readonly sectioned: readonly string[];
}

/**
 * Leaves out the changes of a patch to protected paths. This equals applying the whole patch and restoring those paths, since
 * each part of a patch is one file. New files that take the place of a restored file or of its directory are left out, too.
 */
export function withoutProtected(patch: Uint8Array, patterns: readonly string[], sections: boolean): Protected {
  const isProtected = matcher(patterns);
  const parts = patchParts(patch);
  const ofTask = parts.filter(({ names }) => names.some(isProtected));
  const others = parts.filter(({ names }) => !names.some(isProtected));
  const sectioned = sections ? others.filter(({ names }) => names.some(isSectioned)) : [];
  const closed = cannotBeMerged(sectioned, others);
  const staying = [...ofTask, ...sectioned.filter(({ names }) => names.some((name) => closed.has(name)))];
  const isInTheWay = obstacle(staying.filter(({ change }) => change !== 'added').flatMap(({ names }) => names));
  const dropped = new Set([
    ...staying,
    ...parts.filter(({ change, names }) => change === 'added' && names.some(isInTheWay)),
  ]);
  const kept = parts.filter((part) => !dropped.has(part));
  return {
    patch: kept.length === parts.length ? patch : joinParts(kept),
    restored: unique([...dropped]),
    sectioned: unique(sectioned.filter((part) => !dropped.has(part))),
  };
}

/**
 * Returns the files that cannot be merged, and are therefore restored as a whole: those that are not plain files before or
 * afterwards, and deleted ones whose path a new file blocks. A change of type is two parts of a patch, treated alike.
 */
function cannotBeMerged(sectioned: readonly PatchPart[], all: readonly PatchPart[]): ReadonlySet<string> {
  const isTaken = obstacle(all.filter(({ change }) => change === 'added').flatMap(({ names }) => names));
  const unfit = sectioned.filter(
    (part) => !canBeMerged(part) || (part.change === 'deleted' && part.names.some(isTaken)),
  );
  return new Set(unfit.flatMap(({ names }) => names));
}

const unique = (parts: readonly PatchPart[]): readonly string[] => [...new Set(parts.flatMap(({ names }) => names))];

/** Returns whether a file blocks one of the staying files: it replaces a directory above it, or lies below it. */
function obstacle(staying: readonly string[]): (name: string) => boolean {
  const files = new Set(staying);
  const directories = new Set(staying.flatMap(directoriesOf));
  return (name) => directories.has(name) || directoriesOf(name).some((directory) => files.has(directory));
}

const directoriesOf = (name: string): readonly string[] =>
  [...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index));

/** Whether a path is a file of sections, or lies below a directory that replaced one. */
const isSectioned = matcher(Object.keys(sectionedFiles));

const canBeMerged = ({ path, link }: PatchPart): boolean =>
  path !== null && !link && sectionedFiles[path.slice(path.lastIndexOf('/') + 1)] !== undefined;
