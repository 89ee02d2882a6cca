import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { type ClientSession, createClientSession } from './episodes/client-session.ts';
import type { Environment } from './episodes/environment.ts';
import { answerRpc } from './protocol/json-rpc.ts';
import { type ClientMessage, OpenEnvError, readMessage } from './protocol/messages.ts';

export interface ConnectionLimits {
  /** Clients, and so episodes, at once. */
  readonly episodes: number;
  /** The time without a message after which a client's episode ends. */
  readonly idleMs: number;
}

/** The part of a logger that is used here. */
export interface Log {
  warn(fields: object, message: string): void;
}

/** The part of a WebSocket that is used here. */
interface Socket {
  send(text: string): void;
  close(code: number, reason: string): void;
}

/** One client's connection, which is one session with an environment of its own, as in OpenEnv. */
export interface Connection {
  receive(text: string): void;
  closed(): void;
}

export interface Connections {
  open(socket: Socket): Connection;
  /** Ends the episodes of all clients and closes their connections. */
  close(): Promise<void>;
}

/** Messages of one client that wait. The client of OpenEnv waits for each reply. */
const maxWaiting = 32;
/** The time in which a client that is refused may send its first message. */
const refusedMs = 10_000;
/** Close codes of WebSockets. */
const codes = { normal: 1000, goingAway: 1001, refused: 1008, tryLater: 1013 } as const;

export function createConnections({
  environment,
  limits,
  log,
}: {
  readonly environment: Environment;
  readonly limits: ConnectionLimits;
  readonly log: Log;
}): Connections {
  const open = new Set<(code: number, why: OpenEnvError) => Promise<void>>();
  let isStopping = false;

  function admit(socket: Socket): Connection {
    const session = createClientSession(environment);
    let waiting = 0;
    let last = Promise.resolve();
    let idle: NodeJS.Timeout | undefined;

    const watch = (): void => {
      clearTimeout(idle);
      idle = setTimeout(() => {
        const why = `no message came for ${limits.idleMs / 1000} s, so the episode has ended; connect again`;
        void end(codes.normal, new OpenEnvError('SESSION_ERROR', why));
      }, limits.idleMs);
    };
    async function end(code: number, why: OpenEnvError | null): Promise<void> {
      clearTimeout(idle);
      if (!open.delete(end)) return;
      if (why !== null) socket.send(errorText(why));
      socket.close(code, '');
      await session.close().catch((error: unknown) => log.warn({ error: errorMessage(error) }, 'episode not ended'));
    }
    async function handle(text: string): Promise<void> {
      if (!open.has(end)) return;
      clearTimeout(idle);
      const answer = await answerTo(text, session, log);
      waiting -= 1;
      if (!open.has(end)) return;
      if (answer === null) return end(codes.normal, null);
      socket.send(answer);
      watch();
    }

    open.add(end);
    watch();
    return {
      receive(text) {
        waiting += 1;
        if (waiting > maxWaiting) {
          void end(
            codes.refused,
            new OpenEnvError('SESSION_ERROR', `expected at most ${maxWaiting} messages at once, got more`),
          );
          return;
        }
        last = last.then(() => handle(text));
      },
      closed: () => void end(codes.normal, null),
    };
  }

  return {
    open(socket) {
      if (!isStopping && open.size < limits.episodes) return admit(socket);
      const counts = { active_sessions: open.size, max_sessions: limits.episodes };
      const why = isStopping
        ? 'the server is stopping'
        : `this server takes ${limits.episodes} clients at once, and has as many now; try again later, or serve with a larger --episodes`;
      return refuse(socket, new OpenEnvError('CAPACITY_REACHED', why, counts));
    },
    async close() {
      isStopping = true;
      const why = new OpenEnvError('SESSION_ERROR', 'the server is stopping, and the episode has ended');
      await Promise.all([...open].map((end) => end(codes.goingAway, why)));
    },
  };
}

/**
 * Answers the first message with an error and closes. If the connection were closed before, the client would never read the
 * reason.
 */
function refuse(socket: Socket, why: OpenEnvError): Connection {
  const cut = setTimeout(() => socket.close(codes.tryLater, ''), refusedMs);
  return {
    receive() {
      socket.send(errorText(why));
      socket.close(codes.tryLater, '');
    },
    closed: () => clearTimeout(cut),
  };
}

/** Returns the answer to one message, which may be an error; null if the client closes. */
async function answerTo(text: string, session: ClientSession, log: Log): Promise<string | null> {
  try {
    const message = readMessage(text);
    return message.type === 'close' ? null : JSON.stringify(await replyTo(message, session));
  } catch (error) {
    if (error instanceof OpenEnvError) return errorText(error);
    log.warn({ error: errorMessage(error) }, 'message failed');
    return errorText(new OpenEnvError('EXECUTION_ERROR', errorMessage(error)));
  }
}

async function replyTo(message: Exclude<ClientMessage, { type: 'close' }>, session: ClientSession): Promise<object> {
  switch (message.type) {
    case 'reset':
      return { type: 'observation', data: await session.reset(message.data) };
    case 'step':
      return { type: 'observation', data: await session.step(message.data) };
    case 'state':
      return { type: 'state', data: session.state() };
    case 'mcp':
      return { type: 'mcp', data: await answerRpc(message.data, { tools: session.tools(), session }) };
  }
}

const errorText = ({ code, message, details }: OpenEnvError): string =>
  JSON.stringify({ type: 'error', data: { message, code, ...details } });
