import { joinParts, type PatchPart, patchParts } from './patch-parts.ts';

/** A link that was left out; latin-1. */
export interface DroppedLink {
  readonly path: string;
  /** Null where it can't be read. */
  readonly target: string | null;
}

/**
 * A captured patch without the symlinks that lead out of the workspace: applied in an evaluation, one could point at the
 * hidden tests or the reward.
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
    // A file that became a link, or the other way round, is two parts.
    files: new Set(kept.map(({ path, text }) => path ?? text)).size,
    dropped: parts
      .filter(escapes)
      .map(({ names: [first], path, text }) => ({ path: path ?? first ?? '?', target: targetIn(text) })),
  };
}

/** A symlink that leads out of the workspace, or none whose target can be read. */
export function escapes({ text, path, change, link }: PatchPart): boolean {
  if (!link || change === 'deleted') return false;
  const target = targetIn(text);
  if (path === null || target === null) return true;
  const steps = target.split('/').filter((step) => step !== '' && step !== '.');
  const up = steps.findIndex((step) => step !== '..');
  // Up only at its beginning, where each step is known to be one: what follows may lead through other links.
  const climbs = up === -1 ? steps.length : up;
  return target.startsWith('/') || steps.slice(climbs).includes('..') || climbs > path.split('/').length - 1;
}

/** A link's content is its target, on the one added line; anything else is no link that we know how to judge. */
const targetIn = (text: string): string | null =>
  /\n@@ [^\n]*\n(?:-[^\n]*\n(?:\\[^\n]*\n)?)?\+([^\n]*)\n\\ No newline at end of file\n$/.exec(text)?.[1] ?? null;
