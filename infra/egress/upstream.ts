import type { Socket } from 'node:net';
import { Transform } from 'node:stream';
import type { AddBytes } from './ledger.ts';

/** A connection to a host that the policy has. */
export interface Upstream {
  readonly socket: Socket;
  /** Returns a stream that passes bytes on and lets them be counted. It fails once the sandbox has had all that it gets. */
  passage(): Transform;
}

/** Counts what a connection carries, heads included. `finish` counts the rest. */
export function countBytes(socket: Socket, add: AddBytes) {
  let bytesIn = 0;
  let bytesOut = 0;
  function count(): void {
    const since = { bytesIn: socket.bytesRead - bytesIn, bytesOut: socket.bytesWritten - bytesOut };
    bytesIn = socket.bytesRead;
    bytesOut = socket.bytesWritten;
    add(since);
  }
  return {
    finish: count,
    passage: () =>
      new Transform({
        transform(chunk: Buffer, _encoding, done) {
          try {
            count();
            done(null, chunk);
          } catch (error) {
            done(error instanceof Error ? error : new Error(String(error)));
          }
        },
      }),
  };
}
