import { Duplex } from 'node:stream';

/** An HTTP/2 session learns in the next turn that a piece was written, decides what follows, and writes that in the third. */
const turns = 3;
/** Bytes that wait to be sent before a writer has to wait. */
const mostBytes = 256 * 1024;

/**
 * Creates a stream on another one that sends what is written in a few turns of the event loop as one piece. An HTTP/2 reply is
 * written as head, body and trailers, and each piece of its own would wake every process on the way to the sandbox.
 */
export function gatherWrites(stream: Duplex): Duplex {
  let pending: Buffer[] = [];
  let bytes = 0;
  let waiting: (() => void) | undefined;

  function send(): void {
    if (pending.length > 0 && stream.writable) stream.write(Buffer.concat(pending));
    pending = [];
    bytes = 0;
    const next = waiting;
    waiting = undefined;
    if (next === undefined) return;
    if (stream.writableNeedDrain) stream.once('drain', next);
    else next();
  }

  const gathered = new Duplex({
    read: () => void stream.resume(),
    write(chunk: Buffer, _encoding, done) {
      if (pending.push(chunk) === 1) afterTurns(turns, send);
      bytes += chunk.length;
      if (bytes < mostBytes && !stream.writableNeedDrain) done();
      else waiting = done;
    },
    final(done) {
      send();
      stream.end(done);
    },
    destroy(error, done) {
      stream.destroy();
      done(error);
    },
  });
  stream.on('data', (chunk: Buffer) => {
    if (!gathered.push(chunk)) stream.pause();
  });
  stream.once('end', () => gathered.push(null));
  stream.once('error', (error) => gathered.destroy(error));
  stream.once('close', () => gathered.destroy());
  return gathered;
}

const afterTurns = (count: number, act: () => void): void =>
  void setImmediate(() => (count === 1 ? act() : afterTurns(count - 1, act)));
