import type { Duplex } from 'node:stream';

/** Carries bytes between two streams, each of which may end its half before the other does. */
export function joinStreams(one: Duplex, other: Duplex): void {
  carry(one, other);
  carry(other, one);
}

function carry(from: Duplex, to: Duplex): void {
  from.on('error', () => to.destroy());
  // An end that is on its way is left to arrive.
  from.once('close', () => to.writableEnded || to.destroy());
  from.pipe(to);
}
