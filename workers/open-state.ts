import type { Config } from '../infra/settings/config.ts';
import { openStackId } from '../infra/stack.ts';
import { openSharedState, type SharedState } from '../infra/store/shared-state.ts';
import { requireUsable } from '../infra/store/usable.ts';

/** The shared state of a stack, with the id of the stack. */
export interface StackState extends SharedState {
  readonly stack: string;
}

/** Opens the shared state for a process of the stack. Refuses a store that cannot be used, or that is another stack's. */
export async function openState({ store, paths }: Pick<Config, 'store' | 'paths'>): Promise<StackState> {
  const state = await openSharedState(store);
  await requireUsable(state.objects);
  return { ...state, stack: await openStackId(paths, state.objects) };
}
