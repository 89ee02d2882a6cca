import type { Turn } from '../contracts/trace.ts';

/** Returns the turns from the root of the tree to a leaf: a branch, its first turn first. */
export function pathTo<One extends Pick<Turn, 'parent'>>(turns: readonly One[], leaf: One | undefined): One[] {
  const path: One[] = [];
  for (let at: One | undefined = leaf; at !== undefined; at = turns[at.parent ?? -1]) path.push(at);
  return path.reverse();
}

/** The number of tokens that a turn sampled: its ids, or the count of the upstream model's server, which returns no ids. */
export function sampledTokensOf({ upstream, sampledIds }: Pick<Turn, 'upstream' | 'sampledIds'>): number {
  return upstream?.sampledTokens ?? sampledIds.length;
}
