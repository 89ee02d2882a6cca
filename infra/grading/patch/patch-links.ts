import { joinParts, type PatchPart, patchParts } from './patch-parts.ts';

/** A link that was left out of a patch. Strings are latin-1. */
export interface DroppedLink {
  readonly path: string;
  /** Null if it cannot be read. */
  readonly target: string | null;
}

/**
 * Removes symlinks that lead out of the workspace from a captured patch: in an evaluation, such a link could point at the
 * hidden tests or the reward. `files` counts the changed files that remain.
 */
export function withoutEscapingLinks(patch: Buffer): {
  readonly patch: Buffer;
  readonly files: number;
  readonly dropped: readonly DroppedLink[];
} {
  const parts = patchParts(patch);
  const kept = parts.filter((part) => !escapes(part));
  return {
    patch: kept.length === parts.length ? patch : joinParts(kept),
    // A file that became a link, or the reverse, is two parts.
    files: new Set(kept.map(({ path, text }) => path ?? text)).size,
    dropped: parts
      .filter(escapes)
      .map(({ names: [first], path, text }) => ({ path: path ?? first ?? '?', target: targetIn(text) })),
  };
}

/** Whether a part adds a symlink that leads out of the workspace, or whose target cannot be read. */
export function escapes({ text, path, change, link }: PatchPart): boolean {
  if (!link || change === 'deleted') return false;
  const target = targetIn(text);
  if (path === null || target === null) return true;
  const climbs = climbOf(target);
  return target.startsWith('/') || climbs === null || climbs > path.split('/').length - 1;
}

/**
 * Returns the number of directories that a target climbs at its beginning, where they are real ones. Null if it climbs later, too:
 * earlier steps may lead through other links, so nothing but the kernel knows how far.
 */
export function climbOf(target: string): number | null {
  const steps = target.split('/').filter((step) => step !== '' && step !== '.');
  const down = steps.findIndex((step) => step !== '..');
  const climbs = down === -1 ? steps.length : down;
  return steps.slice(climbs).includes('..') ? null : climbs;
}

/** Returns the target of a link, which is the content of its only added line; null if the part looks different. */
const targetIn = (text: string): string | null =>
  /\n@@ [^\n]*\n(?:-[^\n]*\n(?:\\[^\n]*\n)?)?\+([^\n]*)\n\\ No newline at end of file\n$/.exec(text)?.[1] ?? null;
