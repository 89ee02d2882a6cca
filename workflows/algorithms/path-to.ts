import type { Turn } from '../contracts/trace.ts';

/** The turns of a branch, its first one first. */
export function pathTo<One extends Pick<Turn, 'parent'>>(turns: readonly One[], leaf: One | undefined): One[] {
  const path: One[] = [];
  for (let at: One | undefined = leaf; at !== undefined; at = turns[at.parent ?? -1]) path.push(at);
  return path.reverse();
}
