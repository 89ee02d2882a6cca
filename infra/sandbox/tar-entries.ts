import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { type Extract, extract, type Header, type Pack } from 'tar-stream';

/** Bytes of a tar after which the event loop gets a turn: an entry without content has 512. */
const atOnceBytes = 64 * 2 ** 10;

export interface TarEntry {
  readonly header: Header;
  readonly content: AsyncIterable<Uint8Array>;
}

/** Yields the entries of a tar that arrives in pieces. Each entry's content has to be read before the next one comes. */
export async function* tarEntries(source: AsyncIterable<Uint8Array>): AsyncIterable<TarEntry> {
  const reader = extract();
  const filling = fill(reader, source);
  filling.catch(() => undefined); // the reader passes it on
  for await (const entry of reader) yield { header: entry.header, content: bytesOf(entry) };
  await filling;
}

async function fill(reader: Extract, source: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of source) {
      for (let at = 0; at < chunk.length; at += atOnceBytes) {
        if (reader.destroying) return;
        if (reader.write(chunk.subarray(at, at + atOnceBytes)) === false) await drained(reader);
        if (chunk.length > atOnceBytes) await turn();
      }
    }
    reader.end(null);
  } catch (error) {
    reader.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
}

const drained = (reader: Extract): Promise<void> =>
  new Promise((resolve) => {
    const go = (): void => {
      reader.off('drain', go);
      reader.off('close', go);
      resolve();
    };
    reader.on('drain', go);
    reader.on('close', go);
  });

/** Yields what a stream of bytes yields. */
export async function* bytesOf(source: AsyncIterable<unknown>): AsyncIterable<Uint8Array> {
  for await (const chunk of source) if (chunk instanceof Uint8Array) yield chunk;
}

/** Stands for the mode 0, which the library takes for none; it drops this bit. */
const noRights = 0o10000;

/** Adds an entry to a tar, with the content of a file as it arrives. */
export async function addEntry(
  tar: Pack,
  header: Partial<Header> & Pick<Header, 'name' | 'type'>,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const sink = tar.entry({ ...header, ...(header.mode === 0 && { mode: noRights }) }, (error) =>
    error ? reject(error) : resolve(),
  );
  promise.catch(() => undefined); // it is awaited at the end
  if (header.type === 'file') {
    // A tar that is destroyed drains no more.
    for await (const chunk of content) {
      if (sink.write(chunk) === false) await Promise.race([once(sink, 'drain'), promise]);
    }
    sink.end(null);
  } else await drain(content);
  await promise;
}

/** Reads and drops the rest of an entry. */
export async function drain(content: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of content) {
    // Only the end matters.
  }
}
