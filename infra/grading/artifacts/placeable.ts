import { posix } from 'node:path';
import { type CarriedHeader, isAboveAny, isWithinAny, ownPaths } from '../../sandbox/changes.ts';
import { climbOf } from '../patch/patch-links.ts';

/** The longest path that the kernel takes. */
const longestPath = 4_096;

/**
 * Returns the entries that are put into the sandbox of the tests: artifacts, nothing of temper's own, and no link that leads
 * elsewhere. Nothing is written through a link.
 */
export function placeableAmong<Entry extends { readonly header: CarriedHeader }>(
  entries: readonly Entry[],
  roots: readonly string[],
): readonly Entry[] {
  const links = new Set(entries.flatMap(({ header }) => (header.type === 'symlink' ? [header.path] : [])));
  return entries.filter(({ header }) => isPlaceable(header, roots) && !isBelowAny(header.path, links));
}

function isPlaceable({ path, type, target = '' }: CarriedHeader, roots: readonly string[]): boolean {
  if (path.length > longestPath || !isWithinAny(path, roots) || isWithinAny(path, ownPaths)) return false;
  // A directory that the image has keeps its owner and mode.
  if (type === 'directory') return !roots.includes(path);
  return type !== 'symlink' || staysInside(path, target, roots);
}

/**
 * Whether a link leads to an artifact, also through other links: each of these leads to an artifact itself, from which the next
 * step goes down. So a target climbs at its beginning only, where the directories are real, and leads to no directory of temper's
 * own, nor to one above it.
 */
function staysInside(path: string, target: string, roots: readonly string[]): boolean {
  const climbs = climbOf(target);
  if (climbs === null || (target.startsWith('/') && climbs > 0)) return false;
  const end = posix.resolve(posix.dirname(path), target);
  return isWithinAny(end, roots) && !isWithinAny(end, ownPaths) && !isAboveAny(end, ownPaths);
}

/** Whether a path is below one of these directories. The cost does not grow with their number. */
function isBelowAny(path: string, directories: ReadonlySet<string>): boolean {
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
    if (directories.has(path.slice(0, at))) return true;
  }
  return false;
}
