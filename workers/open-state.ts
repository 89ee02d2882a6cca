import type { Config } from '../infra/config.ts';
import { openStack } from '../infra/stack.ts';
import { openSharedState, type SharedState } from '../infra/store/shared-state.ts';
import { claimFor, requireUsable } from '../infra/store/usable.ts';

/** Opens the shared state for a process of the stack. Refuses a store that cannot be used, or that is another stack's. */
export async function openState({ store, paths }: Pick<Config, 'store' | 'paths'>): Promise<SharedState> {
  const { id } = await openStack(paths);
  const state = await openSharedState(store);
  await requireUsable(state.objects);
  await claimFor(state.objects, id);
  return state;
}
