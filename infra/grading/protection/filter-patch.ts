import { directoriesAbove, joinParts, type PatchPart, patchParts } from '../patch/patch-parts.ts';
import { matcher, matcherAbove } from './patterns.ts';
import { sectionedFiles } from './sections.ts';

/** A patch without changes to the task's own files. Names are latin-1. */
export interface FilteredPatch {
  readonly patch: Uint8Array;
  /** Paths whose change is left out. */
  readonly restored: readonly string[];
  /** Files that belong to the task in part: they are merged after the patch is applied. */
  readonly sectioned: readonly string[];
}

interface FilterOptions {
  readonly mergeSections: boolean;
  readonly unmergeable?: ReadonlySet<string>;
}

/**
 * Leaves out the changes of a patch to protected paths. This equals applying the whole patch and restoring those paths, since
 * each part of a patch is one file. New files that take the place of a restored file or of its directory are left out, too.
 * `mergeSections`: whether files that belong to the task in part are merged rather than left to the patch. `unmergeable`: those
 * of them that are restored as a whole instead.
 */
export function filterPatch(
  patch: Uint8Array,
  patterns: readonly string[],
  { mergeSections, unmergeable = new Set() }: FilterOptions,
): FilteredPatch {
  const isProtected = matcher(patterns);
  const isAbove = matcherAbove(patterns);
  const parts = patchParts(patch);
  // A link may stand for a directory, whose files would be protected, or for one above it.
  const isOfTask = ({ names, link }: PatchPart): boolean =>
    names.some((name) => isProtected(name) || (link && (isProtected(`${name}/`) || isAbove(name))));
  const ofTask = parts.filter(isOfTask);
  const others = parts.filter((part) => !isOfTask(part));
  const sectioned = mergeSections ? others.filter(({ names }) => names.some(isSectioned)) : [];
  const whole = new Set([...unmergeable, ...unmergeableFiles(sectioned, others)]);
  const restored = [...ofTask, ...sectioned.filter(({ names }) => names.some((name) => whole.has(name)))];
  const blocksRestored = blocks(restored.filter(({ change }) => change !== 'added').flatMap(({ names }) => names));
  const dropped = new Set([
    ...restored,
    ...parts.filter(({ change, names }) => change === 'added' && names.some(blocksRestored)),
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
function unmergeableFiles(sectioned: readonly PatchPart[], all: readonly PatchPart[]): ReadonlySet<string> {
  const isBlocked = blocks(all.filter(({ change }) => change === 'added').flatMap(({ names }) => names));
  const unmergeable = sectioned.filter(
    (part) => !canBeMerged(part) || (part.change === 'deleted' && part.names.some(isBlocked)),
  );
  return new Set(unmergeable.flatMap(({ names }) => names));
}

const unique = (parts: readonly PatchPart[]): readonly string[] => [...new Set(parts.flatMap(({ names }) => names))];

/** Returns a predicate for files that cannot exist beside these, because one path lies below the other. */
function blocks(names: readonly string[]): (name: string) => boolean {
  const files = new Set(names);
  const directories = new Set(names.flatMap(directoriesAbove));
  return (name) => directories.has(name) || directoriesAbove(name).some((directory) => files.has(directory));
}

/** Whether a path has the name of a file with sections, or lies below a directory of that name. */
const isSectioned = matcher(Object.keys(sectionedFiles));

const canBeMerged = ({ path, link }: PatchPart): boolean =>
  path !== null && !link && sectionedFiles[path.slice(path.lastIndexOf('/') + 1)] !== undefined;
