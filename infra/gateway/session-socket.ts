import { existsSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { listenAtPath, type ServerAtPath } from '../listen-at-path.ts';
import { limits } from './limits.ts';

export interface SessionSocketOptions {
  readonly path: string;
  readonly onConnection: (socket: Socket) => void;
  readonly onError: (error: unknown) => void;
}

/** The socket of one session: a bounded number of connections, and of new ones per second. */
export interface SessionSocket {
  /** Stops listening. Open connections stay until they end. */
  close(): void;
}

/**
 * Listens on the socket of a session. Connections beyond the limits are not refused one by one, since a process that opens
 * them in a loop would keep the gateway busy with refusals: the socket is closed for a moment instead, in which the kernel
 * refuses them and the relay retries.
 */
export async function listenForSession(options: SessionSocketOptions): Promise<SessionSocket> {
  const { path, onConnection, onError } = options;
  let connections = 0;
  let accepted = 0;
  let countedSince = performance.now();
  let reopening: NodeJS.Timeout | null = null;
  let isClosed = false;

  function admits(): boolean {
    const now = performance.now();
    if (now - countedSince >= 1_000) {
      countedSince = now;
      accepted = 0;
    }
    accepted += 1;
    return connections < limits.sessionConnections && accepted <= limits.sessionConnectsPerSec;
  }

  function listen(): Promise<ServerAtPath> {
    const accepting = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      if (!admits()) {
        socket.destroy();
        return rest();
      }
      connections += 1;
      socket.once('close', () => {
        connections -= 1;
      });
      onConnection(socket);
    });
    const backlog = limits.sessionBacklog;
    return listenAtPath(accepting, { path, backlog, readableAll: true, writableAll: true }, onError);
  }

  /** Closes the socket, and opens it again a moment later. */
  function rest(): void {
    if (reopening !== null || isClosed) return;
    server.close();
    reopening = setTimeout(() => {
      reopening = null;
      void reopen();
    }, limits.sessionRestMs);
  }

  async function reopen(): Promise<void> {
    // Another server serves the session by now.
    if (existsSync(path)) return;
    try {
      const opened = await listen();
      if (isClosed) opened.close();
      else server = opened;
    } catch (error) {
      onError(error);
      if (!isClosed) rest();
    }
  }

  let server = await listen();
  return {
    close() {
      isClosed = true;
      if (reopening !== null) clearTimeout(reopening);
      server.close();
    },
  };
}
