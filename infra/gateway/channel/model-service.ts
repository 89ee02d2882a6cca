import { Agent, type ClientRequest, type IncomingMessage, request as send } from 'node:http';
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { createGateways } from '../../agents/relay/gateways.ts';
import { completeTrailer, endToEndHeaders, gatewayNameHeader, retryHeader } from '../../agents/relay/protocol.ts';
import { orderFor } from '../sockets.ts';
import { channelLimits as limits } from './limits.ts';
import { refuse, type Service } from './serve.ts';

export interface ModelService {
  readonly serve: Service;
  close(): void;
}

export interface ModelServiceOptions {
  readonly session: string;
  /** The directory of the session's sockets. */
  readonly directory: string;
}

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST']);

/**
 * Creates the service of a channel that forwards each request to the gateways' sockets of one session. The relay asks again for
 * what fails here, and then the next gateway is tried.
 */
export function createModelService({ session, directory }: ModelServiceOptions): ModelService {
  const gateways = createGateways(directory, (names) => orderFor(session, names));
  const agent = new Agent({ keepAlive: true, maxSockets: limits.requests });

  function serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const { ':method': method = '', ':path': path = '/' } = headers;
    if (!methods.has(method)) return void refuse(stream, constants.HTTP_STATUS_METHOD_NOT_ALLOWED);
    let upstream: ClientRequest;
    try {
      upstream = send({ agent, socketPath: gateways.next(), method, path, headers: plain(headers) });
    } catch {
      // The path or a header has characters that HTTP/1.1 forbids.
      return void refuse(stream, constants.HTTP_STATUS_BAD_REQUEST);
    }
    upstream.on('error', () => {
      gateways.failed();
      askAgain(stream);
    });
    let isAnswered = false;
    upstream.once('response', (reply) => {
      reply.once('end', () => {
        isAnswered = true;
      });
      if (reply.headers[retryHeader] !== undefined) gateways.failed();
      else if (typeof reply.headers[gatewayNameHeader] === 'string') gateways.served(reply.headers[gatewayNameHeader]);
      answer(stream, reply);
    });
    const { session: channel } = stream;
    let received = 0;
    stream.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    stream.once('close', () => {
      if (isAnswered) return;
      // A stream that is cut ends like one that is over, so the length tells.
      const isWhole = received === Number(headers['content-length']);
      if (channel?.destroyed === true && isWhole) keepTurn(upstream);
      else upstream.destroy();
    });
    stream.pipe(upstream);
  }

  return { serve, close: () => agent.destroy() };
}

/**
 * Stays the client of a turn whose channel broke, so that the gateway does not give it up: the relay asks for it again in a moment
 * and then gets this very reply.
 */
function keepTurn(upstream: ClientRequest): void {
  const timer = setTimeout(() => upstream.destroy(), limits.keptTurnMs).unref();
  upstream.once('close', () => clearTimeout(timer));
}

function answer(stream: ServerHttp2Stream, reply: IncomingMessage): void {
  reply.on('error', () => {
    if (!stream.closed) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  });
  if (stream.destroyed || stream.headersSent) return void reply.resume();
  stream.respond({ ':status': reply.statusCode ?? 502, ...endToEndHeaders(reply.headers) }, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers({ [completeTrailer]: '1' }));
  // The rest of a reply whose channel broke is dropped.
  stream.once('close', () => reply.resume());
  reply.pipe(stream);
}

/** Tells the relay that no gateway has answered. A reply that has begun is cut, so that the relay continues it by another. */
function askAgain(stream: ServerHttp2Stream): void {
  if (stream.destroyed || stream.closed) return;
  if (stream.headersSent) return void stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  stream.respond({ ':status': constants.HTTP_STATUS_SERVICE_UNAVAILABLE, [retryHeader]: '1' }, { endStream: true });
  stream.resume();
}

/** The headers without those of HTTP/2 itself. */
const plain = (headers: IncomingHttpHeaders) =>
  endToEndHeaders(Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(':'))));
