import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { readGreeting } from './client-hello.ts';
import type { EgressRules } from './exchange.ts';
import type { EgressLimits } from './limits.ts';
import { EgressRefusedError } from './refused.ts';
import type { Upstream } from './upstream.ts';

export interface Greeted {
  readonly host: string;
  /** The bytes that came with the CONNECT request. */
  readonly head: Buffer;
}

/**
 * Accepts a CONNECT request and reads the client's greeting, of which the server has seen nothing yet. Returns its bytes. Throws
 * EgressRefusedError unless it is TLS for the host that was asked for.
 */
export async function acceptTunnel(
  client: Duplex,
  { host, head }: Greeted,
  { policy, limits }: Pick<EgressRules, 'policy' | 'limits'>,
  signal: AbortSignal,
): Promise<Buffer> {
  client.write('HTTP/1.1 200 Connection established\r\n\r\n');
  const bytes = await readHello(client, head, limits, signal);
  const greeting = readGreeting(bytes);
  if (greeting.kind !== 'tls') throw new EgressRefusedError('server-name', 'it is not TLS');
  if (greeting.serverName?.toLowerCase() !== host) throw new EgressRefusedError('server-name');
  // An encrypted name can be another one than the name that is shown.
  if (greeting.isEncrypted && policy.mode === 'allowlist')
    throw new EgressRefusedError('server-name', 'it is encrypted');
  return bytes;
}

/** Reads until the greeting is whole, or cannot become one. */
async function readHello(client: Duplex, head: Buffer, limits: EgressLimits, signal: AbortSignal): Promise<Buffer> {
  const late = AbortSignal.timeout(limits.helloMs);
  let bytes = head;
  while (readGreeting(bytes).kind === 'incomplete') {
    if (bytes.length > limits.helloBytes) throw new EgressRefusedError('server-name', 'its greeting is too long');
    const chunk: Buffer | null = client.read();
    if (chunk !== null) {
      bytes = Buffer.concat([bytes, chunk]);
      continue;
    }
    if (client.readableEnded || client.destroyed)
      throw new EgressRefusedError('server-name', 'it ended before its greeting');
    await readableOrEnded(client, AbortSignal.any([signal, late])).catch((error: unknown) => {
      throw late.aborted ? new EgressRefusedError('server-name', 'it sends no greeting') : error;
    });
  }
  return bytes;
}

async function readableOrEnded(client: Duplex, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const options = { signal: AbortSignal.any([signal, over.signal]) };
  try {
    await Promise.race(['readable', 'end', 'close'].map((event) => once(client, event, options)));
  } finally {
    over.abort();
  }
}

/** Carries bytes between both ends until both have ended. */
export async function carryTunnel(
  client: Duplex,
  { socket, passage }: Upstream,
  greeting: Buffer,
  signal: AbortSignal,
): Promise<void> {
  socket.write(greeting);
  await Promise.all([pipeline(client, passage(), socket, { signal }), pipeline(socket, passage(), client, { signal })]);
}
