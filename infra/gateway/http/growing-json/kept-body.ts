import { limits } from '../../limits.ts';
import type { ListRange } from './find-list.ts';
import { countValues } from './values.ts';

/** The text of a body up to the last item of its list, and the items. It grows in place as its list does. */
export interface KeptBody {
  /** The text before the first item. */
  readonly head: string;
  /** The position of the first item. */
  readonly start: number;
  readonly items: readonly unknown[];
  /** Returns the position of the end of the first `count` items. */
  endOf(count: number): number;
  /** Returns the number of JSON values in the first `count` items. */
  valuesOf(count: number): number;
  /** Returns the number of items that a text shares with this one, when everything before them is the same, too. */
  sharedItems(text: Buffer): number;
  /** Replaces the items after the first `count` ones by those of a text that shares these. */
  replaceAfter(count: number, text: Buffer, ends: readonly number[], items: readonly unknown[]): void;
}

/** Keeps a body whose list and items are known. The text belongs to it from then on. */
export function createKeptBody(body: Buffer, list: ListRange, listed: readonly unknown[]): KeptBody {
  const { start } = list;
  let known = body;
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
    start,
    items,
    endOf,
    valuesOf,

    sharedItems(text) {
      const isSame = (from: number, to: number): boolean =>
        to <= text.length && known.compare(text, from, to, from, to) === 0;
      if (!isSame(0, start)) return 0;
      let shared = 0;
      let differs = items.length + 1;
      // Most often all items are shared.
      for (let tried = items.length; differs - shared > 1; tried = Math.floor((shared + differs) / 2)) {
        if (isSame(endOf(shared), endOf(tried))) shared = tried;
        else differs = tried;
      }
      return shared;
    },

    replaceAfter(count, text, addedEnds, added) {
      const from = endOf(count);
      const to = addedEnds.at(-1) ?? from;
      if (to > known.length) {
        // Room for as much again, since a copy for each request would cost more than the request.
        const larger = Buffer.allocUnsafeSlow(2 * to);
        known.copy(larger, 0, 0, from);
        known = larger;
      }
      text.copy(known, from, from, to);
      for (const grown of [items, ends, values]) grown.length = count;
      add(addedEnds, added);
    },
  };
}
