import { constants, type IncomingHttpHeaders, performServerHandshake, type ServerHttp2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';
import { endIfSilent } from '../../agents/relay/end-if-silent.ts';
import { channelWindow } from '../../agents/relay/protocol.ts';
import { gatherWrites } from './gather.ts';
import { channelLimits as limits } from './limits.ts';

/** Answers the requests of a channel that have its authority. It must not throw. */
export type Service = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/**
 * Serves HTTP/2 on a stream to a sandbox until the stream ends, is broken or breaks the rules. `services` are by authority: the
 * sandbox reaches these and nothing else. Resolves with the reason if there is one.
 */
export function serveChannel(connection: Duplex, services: ReadonlyMap<string, Service>): Promise<Error | null> {
  let failure: Error | null = null;
  const fail = (error: Error): void => {
    failure ??= error;
  };
  const stream = gatherWrites(connection);
  const session = performServerHandshake(stream, {
    maxSessionMemory: limits.sessionMb,
    maxSessionInvalidFrames: 0,
    settings: {
      maxConcurrentStreams: limits.requests,
      maxHeaderListSize: limits.headerBytes,
      initialWindowSize: channelWindow,
    },
  });
  session.setLocalWindowSize(channelWindow);
  endIfSilent(session);
  const end = (reason: string): void => {
    fail(new Error(reason));
    session.destroy();
  };
  const overhead = limitOverhead(stream, end);
  const countRequest = limitRequests(end);
  session.on('error', fail);
  session.on('stream', (request, headers) => {
    // An interrupted exchange is the sender's to repeat.
    request.on('error', () => undefined);
    request.on('data', overhead.carried);
    countRequest();
    // It may have been taken back already.
    if (request.destroyed) return;
    const service = services.get(headers[':authority'] ?? '');
    if (service === undefined) refuse(request, constants.HTTP_STATUS_MISDIRECTED_REQUEST);
    else service(request, headers);
  });
  return new Promise((resolve) => {
    stream.once('error', fail);
    session.once('close', () => {
      stream.destroy();
      resolve(failure);
    });
    // Node ends the process if a session still writes to a stream after it has begun to end it in turn.
    stream.once('end', () => {
      session.destroy();
      stream.destroy();
    });
    stream.once('close', () => session.destroy());
  });
}

export function refuse(request: ServerHttp2Stream, status: number): void {
  if (request.destroyed || request.headersSent) return;
  request.respond({ ':status': status }, { endStream: true });
  request.resume();
}

/** Counts requests, and ends a session that makes too many in a second. */
function limitRequests(end: (reason: string) => void): () => void {
  let since = performance.now();
  let requests = 0;
  return () => {
    const now = performance.now();
    if (now - since >= 1_000) {
      since = now;
      requests = 0;
    }
    requests += 1;
    if (requests > limits.requestsPerSec)
      end(`the sandbox made more than ${limits.requestsPerSec} requests in a second`);
  };
}

/** Ends a session that sends too much that is no body. */
function limitOverhead(stream: Duplex, end: (reason: string) => void) {
  const startedAt = performance.now();
  let bytes = 0;
  // The session has its own listener, and this one comes after it.
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    const seconds = (performance.now() - startedAt) / 1_000;
    const allowed = limits.overheadBytes + limits.overheadBytesPerSec * seconds;
    if (bytes > allowed) end(`the sandbox sent ${bytes} bytes that carry no request`);
  });
  return {
    carried(chunk: Buffer): void {
      bytes -= chunk.length;
    },
  };
}
