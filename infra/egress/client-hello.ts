/** The meaning of the first bytes of a connection. */
export type Greeting =
  | { readonly kind: 'incomplete' }
  /** The beginning of a TLS connection; null: it names no server. */
  | { readonly kind: 'tls'; readonly serverName: string | null; readonly isEncrypted: boolean }
  | { readonly kind: 'other' };

const incomplete: Greeting = { kind: 'incomplete' };
const other: Greeting = { kind: 'other' };

const handshakeRecord = 22;
const clientHello = 1;
const longestRecord = 16_384;
const extensions = { serverName: 0, encryptedHello: 0xfe0d } as const;

/**
 * Reads the greeting of a TLS client (RFC 8446, 4.1.2), which may come in several records. What a server might read in another way
 * (two server names, bytes left over) is no greeting.
 */
export function readGreeting(bytes: Buffer): Greeting {
  let handshake = Buffer.alloc(0);
  for (let at = 0; ; ) {
    const length = lengthOf(handshake);
    if (length !== null && handshake.length >= length) return readClientHello(handshake.subarray(0, length));
    if (at < bytes.length && bytes[at] !== handshakeRecord) return other;
    if (bytes.length < at + 5) return incomplete;
    const size = bytes.readUInt16BE(at + 3);
    if (bytes[at + 1] !== 3 || size === 0 || size > longestRecord) return other;
    if (bytes.length < at + 5 + size) return incomplete;
    handshake = Buffer.concat([handshake, bytes.subarray(at + 5, at + 5 + size)]);
    if (handshake[0] !== clientHello) return other;
    at += 5 + size;
  }
}

/** The length of a handshake message with its head; null while that is unknown. */
const lengthOf = (handshake: Buffer): number | null => (handshake.length < 4 ? null : 4 + handshake.readUIntBE(1, 3));

class Malformed extends Error {}

function readClientHello(message: Buffer): Greeting {
  try {
    const body = createReader(message.subarray(4));
    body.take(2 + 32);
    body.vector(1);
    body.vector(2);
    body.vector(1);
    const list = body.left() === 0 ? createReader(Buffer.alloc(0)) : createReader(body.vector(2));
    body.end();
    return { kind: 'tls', ...readExtensions(list) };
  } catch (error) {
    if (error instanceof Malformed) return other;
    throw error;
  }
}

function readExtensions(list: Reader): { serverName: string | null; isEncrypted: boolean } {
  const found = new Map<number, Buffer>();
  while (list.left() > 0) {
    const type = list.number(2);
    const content = list.vector(2);
    if (found.has(type)) throw new Malformed();
    found.set(type, content);
  }
  const names = found.get(extensions.serverName);
  return {
    serverName: names === undefined ? null : readServerName(names),
    isEncrypted: found.has(extensions.encryptedHello),
  };
}

/** Reads the list of server names (RFC 6066, 3), of which there is one. */
function readServerName(content: Buffer): string {
  const outer = createReader(content);
  const list = createReader(outer.vector(2));
  outer.end();
  if (list.number(1) !== 0) throw new Malformed();
  const name = list.vector(2);
  list.end();
  return name.toString('latin1');
}

interface Reader {
  take(count: number): Buffer;
  number(bytes: number): number;
  /** Takes bytes whose number comes before them, in so many bytes. */
  vector(lengthBytes: number): Buffer;
  left(): number;
  /** Throws if there is anything left. */
  end(): void;
}

function createReader(bytes: Buffer): Reader {
  let at = 0;
  const reader: Reader = {
    take(count) {
      if (at + count > bytes.length) throw new Malformed();
      at += count;
      return bytes.subarray(at - count, at);
    },
    number: (count) => reader.take(count).readUIntBE(0, count),
    vector: (lengthBytes) => reader.take(reader.number(lengthBytes)),
    left: () => bytes.length - at,
    end() {
      if (at !== bytes.length) throw new Malformed();
    },
  };
  return reader;
}
