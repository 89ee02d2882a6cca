import type { Sandbox } from '../../sandbox/sandbox.ts';
import { patchParts } from '../patch/patch-parts.ts';
import { matcher } from './patterns.ts';
import { readText } from './read-text.ts';
import { modulePaths, type Protection, runnerModules } from './rules.ts';

/**
 * Returns the protection of a task in a workspace at its base commit. A repository with a module of a runner's name is that
 * runner, or shadows it anyway: there the module is code like any other, which a solution may change, move or turn into a
 * package.
 */
export async function protectionInWorkspace(
  sandbox: Sandbox,
  {
    workdir,
    patch,
    protection,
  }: { readonly workdir: string; readonly patch: Uint8Array; readonly protection: Protection },
  signal: AbortSignal,
): Promise<Protection> {
  const changed = patchParts(patch).flatMap(({ names }) => names);
  const touched = runnerModules.filter((name) => changed.some(matcher(modulePaths(name))));
  const ownModules: string[] = [];
  for (const name of touched) {
    const paths = [`${workdir}/${name}.py`, `${workdir}/${name}/__init__.py`];
    const found = await Promise.all(paths.map((path) => readText(sandbox, path, signal)));
    if (found.some((content) => typeof content === 'string')) ownModules.push(name);
  }
  return ownModules.length === 0 ? protection : { ...protection, ownModules };
}
