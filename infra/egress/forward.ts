import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
  request as send,
} from 'node:http';
import { pipeline } from 'node:stream/promises';
import { EgressRefusedError } from './refused.ts';
import { readAuthority, readHttpAddress, type Target } from './target.ts';
import type { Upstream } from './upstream.ts';

/** Headers that concern one connection, or the proxy. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** A request for an `http:` address that two programs can't read as two different ones. */
export type HttpTarget = Target & { readonly path: string };

/** Throws EgressRefusedError for a request that names two hosts, or whose end is not certain. */
export function readHttpRequest({ url = '', headers, headersDistinct }: IncomingMessage): HttpTarget {
  const target = readHttpAddress(url);
  const [named = null, ...further] = headersDistinct.host ?? [];
  if (further.length > 0) throw new EgressRefusedError('bad-request', 'expected one Host header');
  if (named !== null) {
    const { host, port } = readAuthority(named, 80);
    if (host !== target.host || port !== target.port) {
      throw new EgressRefusedError('bad-request', 'expected the Host header to name the host of the address');
    }
  }
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && (encoding.toLowerCase() !== 'chunked' || headers['content-length'] !== undefined)) {
    throw new EgressRefusedError('bad-request', 'expected either Content-Length or Transfer-Encoding: chunked');
  }
  return target;
}

/** Sends a request on and its reply back. */
export async function forward(
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  { socket, passage }: Upstream,
  { host, port, path }: HttpTarget,
  signal: AbortSignal,
): Promise<void> {
  const outgoing = send({
    createConnection: () => socket,
    signal,
    method: request.method ?? 'GET',
    path,
    headers: {
      ...endToEnd(request.headers),
      host: port === 80 ? host : `${host}:${port}`,
      connection: 'close',
      // Without it, a body of a request whose method usually has none would be sent as what follows the request.
      ...(request.headers['transfer-encoding'] !== undefined && { 'transfer-encoding': 'chunked' }),
    },
  });
  const replied = replyTo(outgoing);
  const sent = pipeline(request, passage(), outgoing, { signal });
  // A server may answer, and close, before it has read all; the reply then decides.
  sent.catch(() => undefined);
  const reply = await replied;
  response.writeHead(reply.statusCode ?? 502, endToEnd(reply.headers));
  await pipeline(reply, passage(), response, { signal });
}

/** Resolves with the reply. A server that leaves HTTP instead of replying, to which nothing may follow it, has sent none. */
function replyTo(outgoing: ClientRequest): Promise<IncomingMessage> {
  const replied = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve);
    outgoing.on('error', reject);
    outgoing.once('close', () => reject(new Error('the server sent no reply')));
  });
  // It may fail while the request is still being sent.
  replied.catch(() => undefined);
  return replied;
}

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = new Set(
    (headers.connection ?? '')
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
  // Without its length, a body would have another end.
  named.delete('content-length');
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name) && !named.has(name)));
}
