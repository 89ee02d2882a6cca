// The frames between a host and the keeper in a Pod: 4 bytes length of the payload, 4 bytes number of the task, 1 byte kind.
// The keeper runs from source text, so this file imports nothing.

export const frameKinds = {
  /** Starts a task, for the host; the payload is a `TaskRequest` as JSON. */
  start: 1,
  /** The host's part of the task's stdin. */
  input: 2,
  /** The host's end of the task's stdin. */
  inputEnd: 3,
  /** The number of bytes that either side has taken, as text. */
  credit: 4,
  /** Tells that the host no longer listens to the task. */
  release: 5,
  /** The host's sign of life, which the keeper answers with its own. */
  alive: 6,
  /** Tells that the keeper is ready. */
  ready: 7,
  stdout: 8,
  stderr: 9,
  /** The end of a task, as the keeper saw it; the payload is a `TaskEnd` as JSON. */
  exit: 10,
} as const;

/** The work of one task: a command under a uid, the end of all processes of a uid, or a new holder. */
export type TaskRequest =
  | {
      readonly do: 'run';
      readonly uid: number;
      /** The capabilities that the command keeps, by setpriv's names. Without them it keeps none. */
      readonly capabilities?: readonly string[];
      readonly argv: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly stdin: boolean;
      /** The bytes of each output that are sent, the rest is read and dropped; null: all of them. 0: there is no output. */
      readonly sentBytes: number | null;
    }
  /** Ends the processes of a uid; null: all but the first process and those of the keepers' uid. */
  | { readonly do: 'end-all'; readonly uid: number | null }
  /** Makes its sender the holder, whose commands alone are followed from then on, unless one of a higher order is. */
  | { readonly do: 'hold'; readonly order: number };

/** The host that has adopted a sandbox, by its fencing token, and the place of that in the order of its adoptions. */
export interface Holder {
  readonly token: string;
  readonly order: number;
}

/** A request with the fencing token of the host that sends it; null where there is none. */
export type SentRequest = TaskRequest & { readonly by: string | null };

export interface TaskEnd {
  readonly code: number;
  /** The token of the sandbox's holder, if the request was refused since another host sent it. */
  readonly heldBy?: string;
  /** The reason why the task could not run. */
  readonly error?: string;
}

/** Bytes of one stream of one task that may be under way before its reader has taken any. */
export const windowBytes = 256 * 1024;
/** The largest payload. The API server ends a connection with messages beyond 31 MB, and smaller ones keep tasks fair. */
export const largestPayload = 32 * 1024;
const headerBytes = 9;
const nothing: Buffer = Buffer.alloc(0);

export interface Frame {
  readonly kind: number;
  readonly task: number;
  readonly payload: Buffer;
}

export function encodeFrame(kind: number, task: number, payload: Uint8Array | string = ''): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
  const frame = Buffer.allocUnsafe(headerBytes + bytes.length);
  frame.writeUInt32BE(bytes.length, 0);
  frame.writeUInt32BE(task, 4);
  frame.writeUInt8(kind, 8);
  frame.set(bytes, headerBytes);
  return frame;
}

/**
 * Creates the function that returns the frames that a chunk completes. Frames may be cut anywhere. It throws if a payload is larger
 * than the sender's largest, since a hostile sender would have all memory taken for it.
 */
export function createFrameDecoder(mostBytes: number = Number.POSITIVE_INFINITY): (chunk: Buffer) => readonly Frame[] {
  let rest = nothing;
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const frames: Frame[] = [];
    let at = 0;
    while (rest.length - at >= headerBytes) {
      const size = rest.readUInt32BE(at);
      if (size > mostBytes) throw new Error(`expected a payload of at most ${mostBytes} bytes, got ${size}`);
      const end = at + headerBytes + size;
      if (rest.length < end) break;
      const payload = rest.subarray(at + headerBytes, end);
      frames.push({ kind: rest.readUInt8(at + 8), task: rest.readUInt32BE(at + 4), payload });
      at = end;
    }
    // An empty view of a chunk would keep its memory until the next one.
    rest = at === rest.length ? nothing : rest.subarray(at);
    return frames;
  };
}
