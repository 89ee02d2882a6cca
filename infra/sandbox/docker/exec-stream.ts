import { Duplex } from 'node:stream';

/** Type of the daemon's frames that hold stdout; others hold stderr. */
const stdout = 1;
const headerBytes = 8;
const lengthAt = 4;

/**
 * Creates the stream of a command's stdin and stdout on its connection to the daemon, which sends stdout and stderr in frames.
 * Unlike the client library's own reader it stops reading while its reader is behind.
 */
export function createExecStream(connection: Duplex): Duplex {
  const payloads = createFrameReader();
  const stream = new Duplex({
    read: () => void connection.resume(),
    write: (chunk: Buffer, _encoding, done) => void connection.write(chunk, done),
    writev: (chunks, done) => void connection.write(Buffer.concat(chunks.map(({ chunk }) => chunk)), done),
    final: (done) => {
      // A command that has ended needs no end of its input.
      if (connection.writable) connection.end(() => done());
      else done();
    },
    destroy: (error, done) => {
      connection.destroy();
      done(error);
    },
  });
  let hasEnded = false;
  connection.on('data', (chunk: Buffer) => {
    let wantsMore = true;
    for (const payload of payloads(chunk)) wantsMore = stream.push(payload);
    if (!wantsMore) connection.pause();
  });
  connection.once('end', () => {
    hasEnded = true;
    // The command has ended and reads no more.
    stream.end();
    stream.push(null);
  });
  connection.once('error', (error) => stream.destroy(error));
  connection.once('close', () => {
    if (!hasEnded) stream.destroy(new Error('the connection to the Docker daemon was closed'));
  });
  return stream;
}

/** Creates the function that returns the pieces of stdout in a chunk of a connection. Frames may be cut anywhere. */
function createFrameReader(): (chunk: Buffer) => readonly Buffer[] {
  const header = Buffer.alloc(headerBytes);
  let headerFilled = 0;
  let left = 0;
  return (chunk) => {
    const pieces: Buffer[] = [];
    for (let at = 0; at < chunk.length; ) {
      if (left > 0) {
        const piece = chunk.subarray(at, at + left);
        if (header[0] === stdout) pieces.push(piece);
        left -= piece.length;
        at += piece.length;
        continue;
      }
      const copied = chunk.copy(header, headerFilled, at, at + headerBytes - headerFilled);
      headerFilled += copied;
      at += copied;
      if (headerFilled < headerBytes) continue;
      headerFilled = 0;
      left = header.readUInt32BE(lengthAt);
    }
    return pieces;
  };
}
