import { dirname } from 'node:path/posix';
import type Docker from 'dockerode';
import { isProgramPlace, preloadList } from '../changes.ts';
import { eachInTurns, filterInTurns } from '../turns.ts';
import { listChanged } from './read-changes.ts';

/** Returns the programs and libraries of a container's image that were replaced or removed, as the daemon sees it from outside. */
export async function changedPrograms(container: Docker.Container): Promise<readonly string[]> {
  const lines = await listChanged(container);
  // An agent has made what the daemon cannot list.
  if (lines === null) return ['more files than can be listed'];
  // A directory counts as changed if something in it is.
  const parents = new Set<string>();
  await eachInTurns(lines, ({ Path }) => parents.add(dirname(Path)));
  const changed = await filterInTurns(
    lines,
    ({ Path, Kind }) => Path === preloadList || (Kind !== 1 && !parents.has(Path) && isProgramPlace(Path)),
  );
  return changed.map(({ Path }) => Path);
}
