import pLimit from 'p-limit';
import { openProviders } from '../../../infra/sandbox/providers.ts';
import type { SandboxKind, SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import type { Config } from '../../../infra/settings/config.ts';
import { openStackId } from '../../../infra/stack.ts';
import { openObjects } from '../../../infra/store/shared-state.ts';

type StackPaths = Pick<Config, 'paths' | 'store'>;
const removedAtOnce = 8;

/** Lists the names of the sandboxes of a stack that exist now, of one kind. Throws if that kind can't be asked. */
export function listSandboxes(stack: StackPaths, kind: SandboxKind): Promise<string[]> {
  return ofEach(stack, kind, async (provider, id) => (await provider.list(id)).map(({ name }) => name));
}

/**
 * Removes the sandboxes of a stack that has ended, as an interrupted run leaves them, of the kinds that are ready. Returns their
 * names.
 */
export function removeSandboxes(stack: StackPaths): Promise<string[]> {
  const limit = pLimit(removedAtOnce);
  return ofEach(stack, 'ready', async (provider, id) => {
    const names = (await provider.list(id)).map(({ name }) => name);
    await Promise.all(names.map((name) => limit(() => provider.remove(name))));
    return names;
  });
}

async function ofEach(
  { paths, store }: StackPaths,
  which: SandboxKind | 'ready',
  work: (provider: SandboxProvider, stack: string) => Promise<string[]>,
): Promise<string[]> {
  const id = await openStackId(paths, await openObjects(store));
  const { all, seen } = await openProviders({ stack: id, root: paths.sandboxes, preferred: 'auto' });
  const results: string[] = [];
  try {
    const chosen = which === 'ready' ? [...(await seen()).values()] : [all.get(which) ?? absent(which)];
    for (const provider of chosen) results.push(...(await work(provider, id)));
  } finally {
    for (const provider of all.values()) await provider.close();
  }
  return results;
}

function absent(kind: SandboxKind): never {
  throw new Error(`expected this machine to have ${kind} sandboxes, it has none`);
}
