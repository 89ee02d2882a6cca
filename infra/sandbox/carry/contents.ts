import { type Contents, carriedLimits, type Listing } from '../changes.ts';

// This file also runs in Pods, from its text, so it imports no package.

/** The characters after which a piece ends. As JSON, a piece is several times as long at most. */
const pieceCharacters = 4_096;

/** Yields contents in pieces, at least one, of which each is parsed within a millisecond. */
export function* piecesOf({ listings, added }: Contents): Iterable<Contents> {
  let piece: { listings: Listing[]; added: string[] } = { listings: [], added: [] };
  let characters = 0;
  function* endedBy(more: number): Iterable<Contents> {
    characters += more;
    if (characters < pieceCharacters) return;
    yield piece;
    piece = { listings: [], added: [] };
    characters = 0;
  }
  for (const { directory, names } of listings) {
    for (const part of partsOf(names)) {
      piece.listings.push({ directory, names: part });
      yield* endedBy(directory.length + charactersOf(part));
    }
  }
  for (const path of added) {
    piece.added.push(path);
    yield* endedBy(path.length + 1);
  }
  yield piece;
}

const charactersOf = (names: readonly string[]): number => names.reduce((sum, name) => sum + name.length + 1, 1);

/** Yields the names of a directory in parts; one without names if it has none. */
function* partsOf(names: readonly string[]): Iterable<readonly string[]> {
  let part: string[] = [];
  let characters = 0;
  for (const name of names) {
    part.push(name);
    characters += name.length + 1;
    if (characters < pieceCharacters) continue;
    yield part;
    part = [];
    characters = 0;
  }
  if (part.length > 0 || names.length === 0) yield part;
}

/** Contents that are put together from pieces. */
export interface JoinedContents extends Contents {
  /** Adds a piece, which counts as a name if it has none. Returns whether all together are within the limits of what is carried. */
  add(piece: Contents): boolean;
}

/** Creates contents without a piece. */
export function joinContents(limits = carriedLimits): JoinedContents {
  const namesIn = new Map<string, string[]>();
  const listings: Listing[] = [];
  const added: string[] = [];
  let [items, characters] = [0, 0];
  const count = (text: string): void => {
    items += 1;
    characters += text.length;
  };
  return {
    listings,
    added,
    add(piece) {
      const before = items;
      for (const { directory, names } of piece.listings) {
        let known = namesIn.get(directory);
        if (known === undefined) {
          known = [];
          namesIn.set(directory, known);
          listings.push({ directory, names: known });
        }
        count(directory);
        for (const name of names) {
          count(name);
          known.push(name);
        }
      }
      for (const path of piece.added) {
        count(path);
        added.push(path);
      }
      // The agent's program may send empty pieces without end.
      if (items === before) items += 1;
      return items <= limits.files && characters <= limits.characters;
    },
  };
}
