import { limits } from '../../limits.ts';
import type { ListRange } from './find-list.ts';
import { type Pieces, sharedBytes } from './pieces.ts';
import { countValues } from './values.ts';

/** The text of a body up to the last item of its list, and the items. It grows in place as its list does. */
export interface KeptBody {
  /** The text before the first item. */
  readonly head: string;
  readonly items: readonly unknown[];
  /** Returns the position of the end of the first `count` items. */
  endOf(count: number): number;
  /** Returns the number of JSON values in the first `count` items. */
  valuesOf(count: number): number;
  /** Returns the number of items that another body shares with this one, when everything before them is the same, too. */
  sharedItems(other: Pieces): number;
  /** Replaces everything after the first `count` items. The ends are positions in the text that follows these. */
  replaceAfter(count: number, text: Buffer, ends: readonly number[], items: readonly unknown[]): void;
}

/** The size of a kept text to which it can grow without another copy, relative to its size now. */
const room = 1.25;

/** Keeps a body whose list and items are known. */
export function createKeptBody(body: Buffer, list: ListRange, listed: readonly unknown[]): KeptBody {
  const { start } = list;
  let known = withRoom(body, body.length);
  const items: unknown[] = [];
  const ends: number[] = [];
  /** The number of JSON values up to the end of each item. */
  const values: number[] = [];

  const endOf = (count: number): number => ends[count - 1] ?? start;
  const valuesOf = (count: number): number => values[count - 1] ?? 0;

  function add(addedEnds: readonly number[], added: readonly unknown[]): void {
    let seen = valuesOf(items.length);
    for (const [index, item] of added.entries()) {
      seen += countValues(item, limits.bodyValues);
      items.push(item);
      ends.push(addedEnds[index] ?? 0);
      values.push(seen);
    }
  }
  add(list.ends, listed);

  return {
    head: body.toString('utf8', 0, start),
    items,
    endOf,
    valuesOf,

    sharedItems(other) {
      const shared = sharedBytes(other, known, endOf(items.length));
      return shared < start ? 0 : ends.findLastIndex((end) => end <= shared) + 1;
    },

    replaceAfter(count, text, addedEnds, added) {
      const from = endOf(count);
      const length = addedEnds.at(-1) ?? 0;
      if (from + length > known.length) known = withRoom(known.subarray(0, from), from + length);
      text.copy(known, from, 0, length);
      for (const grown of [items, ends, values]) grown.length = count;
      add(
        addedEnds.map((end) => from + end),
        added,
      );
    },
  };
}

/** Copies a text to a buffer in which a text of that length can still grow. */
function withRoom(text: Buffer, length: number): Buffer {
  const roomy = Buffer.allocUnsafeSlow(Math.ceil(room * length));
  text.copy(roomy);
  return roomy;
}
