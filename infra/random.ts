import { hashText } from './hash.ts';

/** A seeded random number generator. Equal seeds give equal numbers everywhere. Not suitable for secrets. */
export interface Random {
  /** Draws an integer in [0, bound). */
  below(bound: number): number;
  /** Draws a number in [0, 1), uniformly. */
  unit(): number;
  /** Draws an element of a list, which must not be empty. */
  pick<Item>(items: readonly Item[]): Item;
  /** Returns the elements in random order. */
  shuffle<Item>(items: readonly Item[]): readonly Item[];
}

/** Creates a generator: splitmix32 (https://github.com/bryc/code/blob/master/jshash/PRNGs.md), seeded with the hash of a text. */
export function createRandom(seed: string): Random {
  let state = hashText(seed);
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
  const unit = (): number => next() / 2 ** 32;
  const below = (bound: number): number => Math.floor(unit() * bound);
  return {
    unit,
    below,
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('expected a list to pick from, got an empty one');
      return item;
    },
    shuffle(items) {
      return items
        .map((item) => ({ item, order: unit() }))
        .sort((a, b) => a.order - b.order)
        .map(({ item }) => item);
    },
  };
}
