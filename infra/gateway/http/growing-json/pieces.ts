/** A body in the pieces in which it arrived. They are joined only where necessary, since a copy of a long body is garbage. */
export type Pieces = readonly Buffer[];

export const lengthOf = (pieces: Pieces): number => pieces.reduce((sum, { length }) => sum + length, 0);

/** Counts the leading bytes that a body has in common with the first `most` bytes of another one. */
export function sharedBytes(pieces: Pieces, other: Buffer, most: number): number {
  let shared = 0;
  for (const piece of pieces) {
    const length = Math.min(piece.length, most - shared);
    const same = commonLength(piece.subarray(0, length), other.subarray(shared, shared + length));
    shared += same;
    if (same < piece.length) break;
  }
  return shared;
}

/** Counts the leading bytes that two buffers of the same length have in common. */
function commonLength(one: Buffer, other: Buffer): number {
  let same = 0;
  let differs = one.length + 1;
  // Most often all bytes are the same.
  for (let tried = one.length; differs - same > 1; tried = Math.floor((same + differs) / 2)) {
    if (one.compare(other, same, tried, same, tried) === 0) same = tried;
    else differs = tried;
  }
  return same;
}

/** Returns the bytes of a body from a position on. */
export function bytesFrom(pieces: Pieces, position: number): Buffer {
  let skipped = 0;
  let first = 0;
  for (let next = pieces[0]; next !== undefined && skipped + next.length <= position; next = pieces[first]) {
    skipped += next.length;
    first += 1;
  }
  const [head = Buffer.alloc(0), ...rest] = pieces.slice(first);
  const begun = head.subarray(position - skipped);
  return rest.length === 0 ? begun : Buffer.concat([begun, ...rest]);
}
