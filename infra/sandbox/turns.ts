import { setImmediate as turn } from 'node:timers/promises';

// This file also runs in Pods, from its text, so it imports no package.

/** Items of a list from a sandbox after which the event loop gets a turn. */
export const itemsATurn = 500;
const pieceCharacters = 64 * 2 ** 10;

/**
 * Calls a function for each item of a list that may be long, until it returns false, and lets others have the event loop now and
 * then.
 */
export async function eachInTurns<Item>(items: Iterable<Item>, each: (item: Item) => unknown): Promise<void> {
  let count = 0;
  for (const item of items) {
    if (each(item) === false) return;
    count += 1;
    if (count % itemsATurn === 0) await turn();
  }
}

/** Returns the items of a list that may be long for which a function returns true. */
export async function filterInTurns<Item>(
  items: Iterable<Item>,
  isWanted: (item: Item) => boolean,
): Promise<readonly Item[]> {
  const wanted: Item[] = [];
  await eachInTurns(items, (item) => {
    if (isWanted(item)) wanted.push(item);
    return true;
  });
  return wanted;
}

export async function setInTurns<Item>(items: Iterable<Item>): Promise<ReadonlySet<Item>> {
  const set = new Set<Item>();
  await eachInTurns(items, (item) => set.add(item));
  return set;
}

/** Yields the texts that end with a NUL, one at a time. */
export function* textsIn(bytes: Buffer, encoding: 'utf8' | 'latin1'): Iterable<string> {
  for (let at = 0, end = bytes.indexOf(0); end >= 0; at = end + 1, end = bytes.indexOf(0, at)) {
    yield bytes.toString(encoding, at, end);
  }
}

/** Returns the bytes of texts, each with a NUL behind it. */
export async function joinInTurns(texts: Iterable<string>, encoding: 'utf8' | 'latin1'): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let piece = '';
  await eachInTurns(texts, (text) => {
    piece += `${text}\0`;
    if (piece.length < pieceCharacters) return;
    pieces.push(Buffer.from(piece, encoding));
    piece = '';
  });
  return Buffer.concat([...pieces, Buffer.from(piece, encoding)]);
}
