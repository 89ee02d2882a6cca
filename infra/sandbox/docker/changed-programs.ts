import { dirname } from 'node:path/posix';
import type Docker from 'dockerode';
import { listChanged } from './read-changes.ts';

const places = /^\/(?:usr$|(?:usr\/(?:local\/)?)?(?:bin|sbin|lib\w*)(?:\/|$))/;
/** Libraries that every program loads first, if the file is there. */
const preload = '/etc/ld.so.preload';

/** Returns the programs and libraries of a container's image that were replaced or removed, as the daemon sees it from outside. */
export async function changedPrograms(container: Docker.Container): Promise<readonly string[]> {
  const lines = await listChanged(container);
  // An agent has made what the daemon cannot list.
  if (lines === null) return ['more files than can be listed'];
  // A directory counts as changed if something in it is.
  const parents = new Set(lines.map(({ Path }) => dirname(Path)));
  return lines
    .filter(({ Path, Kind }) => Path === preload || (Kind !== 1 && !parents.has(Path) && places.test(Path)))
    .map(({ Path }) => Path);
}
