import type { ClientHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { endIfSilent } from './end-if-silent.ts';
import { channelWindow, completeTrailer, egressService, modelService } from './protocol.ts';
import type { Call, Reply, Route, Sending } from './route.ts';

const { rmSync } = process.getBuiltinModule('node:fs');
const { createServer } = process.getBuiltinModule('node:net');
const { PassThrough } = process.getBuiltinModule('node:stream');
const { connect, constants } = process.getBuiltinModule('node:http2');

export interface StreamRouteOptions {
  /** The unix socket to which the bridge connects. */
  readonly socketPath: string;
  readonly retryMs: number;
}

export interface StreamRoute extends Route {
  close(): void;
}

/**
 * Creates the route over a stream that the host opens: HTTP/2 on a connection of the bridge. While there is none, calls wait for
 * the next. The newest connection is the one in use, because the host opens another only when it has lost the last.
 */
export async function createStreamRoute({ socketPath, retryMs }: StreamRouteOptions): Promise<StreamRoute> {
  let session: ClientHttp2Session | null = null;
  let opened = Promise.withResolvers<void>();

  function use(socket: Socket): void {
    session?.destroy();
    const current = connect('http://gateway', {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: channelWindow },
    });
    session = current;
    current.once('connect', () => current.setLocalWindowSize(channelWindow));
    // What ends a session is reported by the calls on it.
    current.on('error', () => undefined);
    current.once('close', () => {
      if (session === current) session = null;
      socket.destroy();
    });
    endIfSilent(current);
    opened.resolve();
    opened = Promise.withResolvers();
  }

  function send(call: Call): Sending {
    try {
      if (session === null) throw new Error('the host has not opened the channel');
      return sendOn(session, call);
    } catch (error) {
      // A session that is just being closed throws.
      return { reply: Promise.reject(error), abandon: () => undefined };
    }
  }

  async function openEgress(): Promise<Duplex> {
    if (session === null) throw new Error('the host has not opened the channel');
    const stream = session.request(
      { ':method': 'POST', ':path': '/', ':authority': egressService },
      { endStream: false },
    );
    await new Promise<void>((resolve, reject) => {
      stream.on('error', reject);
      stream.once('close', () => reject(new Error('the channel broke')));
      stream.once('response', ({ ':status': status }) => {
        if (status === constants.HTTP_STATUS_OK) return resolve();
        stream.destroy();
        reject(new Error(`the host answers ${status}`));
      });
    });
    return stream;
  }

  async function pause(ms: number): Promise<void> {
    const over = new AbortController();
    const late = sleep(ms, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([late, opened.promise]);
    over.abort();
  }

  rmSync(socketPath, { force: true });
  const server = createServer(use);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, resolve);
  });
  return {
    retryMs,
    send,
    openEgress,
    failed: () => undefined,
    pause,
    close() {
      server.close();
      session?.destroy();
    },
  };
}

function sendOn(session: ClientHttp2Session, { method, path, headers, body }: Call): Sending {
  const stream = session.request({
    ...headers,
    ':method': method,
    ':path': path,
    ':authority': modelService,
  });
  let isComplete = false;
  stream.once('trailers', (trailers) => {
    isComplete = trailers[completeTrailer] !== undefined;
  });
  const reply = new Promise<Reply>((resolve, reject) => {
    stream.on('error', reject);
    stream.once('close', () => reject(new Error('the channel broke')));
    stream.once('response', ({ ':status': status = 502, ...received }) => {
      // A stream that the other end has closed can't be iterated any more, although all of its reply is still to be read.
      const body = stream.pipe(new PassThrough());
      // Its reader may come later.
      body.on('error', () => undefined);
      stream.once('error', (error) => body.destroy(error));
      stream.once('close', () => body.end());
      resolve({ status, headers: received, body, isComplete: () => isComplete });
    });
  });
  stream.end(body);
  return { reply, abandon: () => stream.close(constants.NGHTTP2_CANCEL) };
}
