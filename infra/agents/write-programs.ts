import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { exists } from '../process/exists.ts';
import { createPackages, type PackagedAgent } from './packages.ts';
import { createRuntime } from './runtime.ts';

/**
 * Writes what a sandbox without mounts must hold: Node with temper's own programs, and the packages of the named agents, each
 * under its name and version. Returns the directories that it made.
 */
export async function writePrograms(
  directory: string,
  agents: readonly PackagedAgent[],
  cacheDir: string,
): Promise<readonly string[]> {
  const packages = createPackages({ cacheDir });
  const mounts = [createRuntime({ cacheDir }).prepare(), ...agents.map((agent) => packages.prepare(agent))];
  await mkdir(directory, { recursive: true });
  const made: string[] = [];
  for (const { source, program } of await Promise.all(mounts)) {
    const target = join(directory, `${program?.name}-${program?.version}`);
    if (await exists(target)) continue;
    await cp(source, target, { recursive: true, verbatimSymlinks: true });
    made.push(target);
  }
  return made;
}
