import { LRUCache } from 'lru-cache';
import type { TaskAddress } from '../../workflows/contracts/task.ts';
import { createRandom } from '../random.ts';

/** A chosen task, and the left-out tasks that were skipped between the previous task and this one. */
export interface Choice {
  readonly address: TaskAddress;
  readonly passedOver: readonly TaskAddress[];
}

/** An endless order of the tasks of a list: round by round, each round with all tasks in another order. */
export interface TaskOrder {
  /**
   * Returns the index-th task, or null when all tasks are left out. Left-out tasks are skipped, so that each round contains
   * every other task once. Equal lists, seeds, indexes and left-out tasks give equal results in every process. The first
   * call of a round takes time proportional to the list; later ones are cheap.
   */
  at(index: number, leftOut: ReadonlySet<TaskAddress>): Choice | null;
}

interface Round {
  readonly order: readonly TaskAddress[];
  /** The positions in `order` of the tasks that are not left out. */
  readonly turns: readonly number[];
}

/** Two rounds are cached, since concurrent requests may fall into neighbouring rounds. */
const maxCachedRounds = 2;

export function createTaskOrder(addresses: readonly TaskAddress[], seed: string): TaskOrder {
  let cache: { readonly leftOut: string; readonly turns: number; readonly rounds: LRUCache<number, Round> } | null =
    null;

  function cacheWithout(leftOut: ReadonlySet<TaskAddress>) {
    const names = [...leftOut].sort().join('\n');
    if (cache?.leftOut !== names) {
      const turns = addresses.filter((address) => !leftOut.has(address)).length;
      cache = { leftOut: names, turns, rounds: new LRUCache({ max: maxCachedRounds }) };
    }
    return cache;
  }

  function createRound(number: number, leftOut: ReadonlySet<TaskAddress>): Round {
    const order = createRandom(`${seed}#${number}`).shuffle(addresses);
    const turns = order.flatMap((address, position) => (leftOut.has(address) ? [] : [position]));
    return { order, turns };
  }

  return {
    at(index, leftOut) {
      const { turns, rounds } = cacheWithout(leftOut);
      if (turns === 0) return null;
      const number = Math.floor(index / turns);
      const round = rounds.get(number) ?? createRound(number, leftOut);
      rounds.set(number, round);
      const turn = index % turns;
      const position = round.turns[turn];
      const address = round.order[position ?? -1];
      if (position === undefined || address === undefined) throw new Error(`expected an index from 0, got ${index}`);
      const before = turn === 0 ? -1 : (round.turns[turn - 1] ?? -1);
      return { address, passedOver: round.order.slice(before + 1, position) };
    },
  };
}

/**
 * Returns the index-th non-negative number that is not left out, and how many left-out numbers directly precede it. Endless
 * sets, whose tasks come in order, are counted this way.
 */
export function countSkipping(
  index: number,
  leftOut: readonly number[],
): { readonly at: number; readonly passed: number } {
  let at = index;
  for (const number of leftOut.toSorted((a, b) => a - b)) if (number <= at) at += 1;
  const skipped = new Set(leftOut);
  let passed = 0;
  while (skipped.has(at - passed - 1)) passed += 1;
  return { at, passed };
}
