/**
 * Yields the server-sent events of a reply, each whole, so that an interrupted reply can be continued after its last event.
 * An incomplete last event of an interrupted reply is dropped. Written by hand because nothing in a sandbox may depend on an npm
 * package, and because the relay passes the bytes on unparsed.
 */
export async function* splitEvents(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  let pending: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    // The last newline may have been the first half of a separator.
    const from = Math.max(0, pending.length - 1);
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    let begin = 0;
    for (let end = pending.indexOf(separator, from); end >= 0; end = pending.indexOf(separator, begin)) {
      yield pending.subarray(begin, end + separator.length);
      begin = end + separator.length;
    }
    pending = pending.subarray(begin);
  }
  if (pending.length > 0) yield pending;
}

const separator = '\n\n';

/**
 * Whether an event is a keep-alive in any of the gateway's formats. Keep-alives depend on time, so a repeated reply has them at
 * other positions.
 */
export const isKeepAlive = (event: Buffer): boolean => keepAlive.test(event.toString('latin1', 0, longestName));

const keepAlive = /^(?::|event: (?:ping|keepalive)\n)/;
const longestName = 32;
