import { joinParts, type PatchPart, patchParts } from './patch-parts.ts';

/**
 * A captured patch without the symlinks that lead out of the workspace: applied in an evaluation, one could point at the
 * hidden tests or the reward.
 */
export function withoutEscapingLinks(patch: Buffer): {
  readonly patch: Buffer;
  readonly files: number;
  readonly dropped: number;
} {
  const parts = patchParts(patch);
  const kept = parts.filter((part) => !escapes(part));
  return {
    patch: kept.length === parts.length ? patch : joinParts(kept),
    // A file that became a link, or the other way round, is two parts.
    files: new Set(kept.map(({ path, text }) => path ?? text)).size,
    dropped: parts.length - kept.length,
  };
}

function escapes({ text, path, change, link }: PatchPart): boolean {
  if (!link || change === 'deleted') return false;
  // A link's content is its target, on the one added line; anything else is no link that we know how to judge.
  const target = /\n@@ [^\n]*\n(?:-[^\n]*\n(?:\\[^\n]*\n)?)?\+([^\n]*)\n\\ No newline at end of file\n$/.exec(
    text,
  )?.[1];
  if (path === null || target === undefined) return true;
  const steps = target.split('/').filter((step) => step !== '' && step !== '.');
  const up = steps.findIndex((step) => step !== '..');
  // Up only at its beginning, where each step is known to be one: what follows may lead through other links.
  const climbs = up === -1 ? steps.length : up;
  return target.startsWith('/') || steps.slice(climbs).includes('..') || climbs > path.split('/').length - 1;
}
