import { joinParts, type PatchPart, patchParts } from '../patch/patch-parts.ts';
import { matcher } from './patterns.ts';
import { sectionedFiles } from './sections.ts';

/** A patch without what is the task's own; names are latin-1. */
export interface Protected {
  readonly patch: Uint8Array;
  /** Paths whose change is left out. */
  readonly restored: readonly string[];
  /** Files of which a part is the task's: to be merged once the patch is applied. */
  readonly sectioned: readonly string[];
}

/**
 * Leaves out what a patch does to protected paths: that is the same as to apply it whole and put them back, since each part
 * of a patch is one file. What stands in the way of a file that stays goes as well.
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
 * Files that stay as a whole: what is no plain file before or afterwards, and what is deleted where something else takes its
 * place, so that there is none for the task's part. A type that changes is two parts of a patch, which go together.
 */
function cannotBeMerged(sectioned: readonly PatchPart[], all: readonly PatchPart[]): ReadonlySet<string> {
  const isTaken = obstacle(all.filter(({ change }) => change === 'added').flatMap(({ names }) => names));
  const unfit = sectioned.filter(
    (part) => !canBeMerged(part) || (part.change === 'deleted' && part.names.some(isTaken)),
  );
  return new Set(unfit.flatMap(({ names }) => names));
}

const unique = (parts: readonly PatchPart[]): readonly string[] => [...new Set(parts.flatMap(({ names }) => names))];

/** A file in the place of a directory that these are in, or below one of these. */
function obstacle(staying: readonly string[]): (name: string) => boolean {
  const files = new Set(staying);
  const directories = new Set(staying.flatMap(directoriesOf));
  return (name) => directories.has(name) || directoriesOf(name).some((directory) => files.has(directory));
}

const directoriesOf = (name: string): readonly string[] =>
  [...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index));

/** Also what lies below a directory of such a name, which takes the file's place. */
const isSectioned = matcher(Object.keys(sectionedFiles));

const canBeMerged = ({ path, link }: PatchPart): boolean =>
  path !== null && !link && sectionedFiles[path.slice(path.lastIndexOf('/') + 1)] !== undefined;
