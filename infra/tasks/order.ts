import type { TaskAddress } from '../../workflows/contracts/task.ts';
import { createRandom } from './generated/random.ts';
import { createRecent, type Recent } from './recent.ts';

/** A task of a set, and those that would have come between the one before it and it. */
export interface Choice {
  readonly address: TaskAddress;
  readonly passedOver: readonly TaskAddress[];
}

/** The order in which the tasks of a list are gone through, round by round, each round in another order. */
export interface Order {
  /**
   * The index-th task. Those that are left out take no turn, so that all others have one in each round. The same list, seed,
   * index and left-out tasks give the same answer in every process; the first of a round costs its length, the others little.
   * Null: all are left out.
   */
  at(index: number, leftOut: ReadonlySet<TaskAddress>): Choice | null;
}

interface Round {
  readonly order: readonly TaskAddress[];
  /** Where in it those are that are not left out. */
  readonly turns: readonly number[];
}

/** Groups that are asked for at once can be of two rounds. */
const mostRounds = 2;

export function createOrder(addresses: readonly TaskAddress[], seed: string): Order {
  let seen: { readonly leftOut: string; readonly turns: number; readonly rounds: Recent<Round> } | null = null;

  function without(leftOut: ReadonlySet<TaskAddress>) {
    const names = [...leftOut].sort().join('\n');
    if (seen?.leftOut !== names) {
      const turns = addresses.filter((address) => !leftOut.has(address)).length;
      seen = { leftOut: names, turns, rounds: createRecent(mostRounds) };
    }
    return seen;
  }

  function roundOf(number: number, leftOut: ReadonlySet<TaskAddress>): Round {
    const order = createRandom(`${seed}#${number}`).shuffle(addresses);
    const turns = order.flatMap((address, position) => (leftOut.has(address) ? [] : [position]));
    return { order, turns };
  }

  return {
    at(index, leftOut) {
      const { turns, rounds } = without(leftOut);
      if (turns === 0) return null;
      const number = Math.floor(index / turns);
      const round = rounds.get(String(number)) ?? roundOf(number, leftOut);
      rounds.set(String(number), round);
      const turn = index % turns;
      const position = round.turns[turn];
      const address = round.order[position ?? -1];
      if (position === undefined || address === undefined) throw new Error(`expected an index from 0, got ${index}`);
      const before = turn === 0 ? -1 : (round.turns[turn - 1] ?? -1);
      return { address, passedOver: round.order.slice(before + 1, position) };
    },
  };
}

/** The index-th number from 0 of those that are not left out: for sets without an end, which are gone through in order. */
export function countingOn(
  index: number,
  leftOut: readonly number[],
): { readonly at: number; readonly passed: number } {
  let at = index;
  for (const one of leftOut.toSorted((a, b) => a - b)) if (one <= at) at += 1;
  const out = new Set(leftOut);
  let passed = 0;
  while (out.has(at - passed - 1)) passed += 1;
  return { at, passed };
}
