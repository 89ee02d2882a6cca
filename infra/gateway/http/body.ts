import type { IncomingMessage } from 'node:http';
import { limits } from '../limits.ts';
import { Refusal } from '../refusal.ts';

interface BodyRoom {
  heldBytes: number;
}

/** Reads bodies of several owners; those of one share a room, so that no agent takes the memory of another. */
export function createBodyReader<Owner extends object>() {
  const rooms = new WeakMap<Owner, BodyRoom>();
  return (request: IncomingMessage, owner: Owner): Promise<unknown> => {
    const room = rooms.get(owner) ?? { heldBytes: 0 };
    rooms.set(owner, room);
    return readJsonBody(request, room);
  };
}

/**
 * Reads a JSON body of bounded size, and of a bounded number of values: each costs far more memory and time than its bytes.
 * Throws a Refusal: `too-large`, `malformed`, or `too-many-turns` when the room is full.
 */
export async function readJsonBody(request: IncomingMessage, room: BodyRoom = { heldBytes: 0 }): Promise<unknown> {
  const value = parsed(await readBody(request, room));
  if (holdsAtMost(value, limits.bodyValues)) return value;
  throw new Refusal('too-large', `expected a body of at most ${limits.bodyValues} JSON values, got more`);
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw new Refusal('malformed', `expected JSON: ${error instanceof Error ? error.message.slice(0, 200) : error}`);
  }
}

/** What is refused is read to its end but not kept: many clients hear no answer before they have sent everything. */
function readBody(request: IncomingMessage, room: BodyRoom): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let size = 0;
    let held = 0;
    let refusal: Refusal | null = null;
    const letGo = (): void => {
      chunks = [];
      room.heldBytes -= held;
      held = 0;
    };
    const refuse = (because: Refusal): void => {
      refusal = because;
      letGo();
    };
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limits.drainedBytes) request.destroy();
      if (refusal !== null) return;
      chunks.push(chunk);
      held += chunk.length;
      room.heldBytes += chunk.length;
      if (size > limits.bodyBytes)
        refuse(new Refusal('too-large', `expected a body of at most ${limits.bodyBytes} bytes`));
      else if (room.heldBytes > limits.roomBytes) refuse(fullRoom());
    });
    request.once('end', () => {
      if (refusal === null) resolve(Buffer.concat(chunks));
      else reject(refusal);
      letGo();
    });
    request.once('error', reject);
    request.once('close', () => {
      letGo();
      reject(new Refusal('malformed', 'the connection was closed before the body had ended'));
    });
  });
}

const fullRoom = (): Refusal =>
  new Refusal('too-many-turns', `this session sends more than ${limits.roomBytes} bytes at once; wait for a reply`);

/** Walks without recursion, and no further than it must. */
export function holdsAtMost(value: unknown, most: number): boolean {
  const left: object[] = isNested(value) ? [value] : [];
  let seen = 1;
  for (let item = left.pop(); item !== undefined; item = left.pop()) {
    const members: readonly unknown[] = Array.isArray(item) ? item : Object.values(item);
    seen += members.length;
    if (seen > most) return false;
    for (const member of members) if (isNested(member)) left.push(member);
  }
  return true;
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null;
