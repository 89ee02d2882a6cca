import type Docker from 'dockerode';
import { until } from '../until.ts';

/* Images that a test has built, on a daemon on which others build and remove theirs at the same time. */

/** Returns the tags of the images that were built with this value of the variable TEST. */
export async function builtTags(docker: Docker, mark: string): Promise<readonly string[]> {
  const found = await docker.listImages({ filters: { reference: ['temper-built'] } });
  const tags = found.map(async ({ Id }) => {
    const info = await docker.getImage(Id).inspect().catch(unless(404, null));
    return info?.Config.Env?.includes(`TEST=${mark}`) ? info.RepoTags : [];
  });
  return (await Promise.all(tags)).flat();
}

/** Removes what the builds of a stack have left without a name. */
export async function pruneBuilt(docker: Docker, stack: string): Promise<void> {
  const filters = { dangling: ['true'], label: [`temper.built-by=${stack}`] };
  // The daemon prunes for one at a time, and refuses the others.
  await until(() => docker.pruneImages({ filters }).then(() => true, unless(409, false)));
}

/** Returns a handler that turns errors of one status into a value, and throws all others again. */
const unless =
  <Value>(status: number, value: Value) =>
  (error: unknown): Value => {
    if (error instanceof Error && 'statusCode' in error && error.statusCode === status) return value;
    throw error;
  };
