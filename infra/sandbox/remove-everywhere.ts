import { attemptAll } from '../attempt-all.ts';
import type { Providers } from './index.ts';

/**
 * Removes the sandbox of a name from every kind that this host offers, and returns whether there was one. An unreachable
 * engine does not block the other kinds; its failure is thrown at the end.
 */
export async function removeEverywhere(providers: Pick<Providers, 'seen'>, name: string): Promise<boolean> {
  let removed = false;
  const kinds = await providers.seen();
  await attemptAll(kinds.values(), `sandbox ${name} to be removed, of whatever kind it is`, async (provider) => {
    removed = (await provider.remove(name)) || removed;
  });
  return removed;
}
