import type { Sandbox } from '../../sandbox/sandbox.ts';
import { patchParts } from '../patch/patch-parts.ts';
import { matcher } from './patterns.ts';
import { readText } from './read-text.ts';
import { type Protection, placesOfModule, runnerModules } from './rules.ts';

/**
 * The protection of a task in a workspace at its base commit. A repository that has a module of a runner's name is that
 * runner, or comes before it anyway: there the module is code like all other code, which a solution may change, move or make
 * a package of.
 */
export async function protectionAt(
  sandbox: Sandbox,
  {
    workdir,
    patch,
    protection,
  }: { readonly workdir: string; readonly patch: Uint8Array; readonly protection: Protection },
  signal: AbortSignal,
): Promise<Protection> {
  const changed = patchParts(patch).flatMap(({ names }) => names);
  const touched = runnerModules.filter((name) => changed.some(matcher(placesOfModule(name))));
  const ownModules: string[] = [];
  for (const name of touched) {
    const places = [`${workdir}/${name}.py`, `${workdir}/${name}/__init__.py`];
    const found = await Promise.all(places.map((path) => readText(sandbox, path, signal)));
    if (found.some((content) => typeof content === 'string')) ownModules.push(name);
  }
  return ownModules.length === 0 ? protection : { ...protection, ownModules };
}
