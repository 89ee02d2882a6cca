import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { httpCall, jsonOf } from '../../http/client.ts';
import type { NamedEnvironment } from './environments.ts';

/** A connection to an environment: one session of it, with an episode of its own. */
export interface EnvironmentConnection {
  /** Returns whether the environment answers a ping. Without one, a connection that broke while idle seems to be open. */
  isAlive(): Promise<boolean>;
  reset(data: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<EnvironmentReply>;
  step(action: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<EnvironmentReply | NoReply>;
  close(): void;
}

/** The answer of an environment: the result of a step, or a refusal, after which the episode continues. */
export type EnvironmentReply =
  | {
      /** An object in most environments, but any JSON value in some. */
      readonly observation: unknown;
      readonly reward: number | null;
      readonly done: boolean;
    }
  | { readonly refusal: string };

/** The reason why an action of the agent got no reply. The connection has ended. */
export interface NoReply {
  /**
   * `late`: none came before the time limit; `too-large`: one side refused the other's message for its size; `failed`: the
   * environment ended the session with an error.
   */
  readonly without: 'late' | 'too-large' | 'failed';
}

const messageBytes = 16 * 1024 * 1024;
const handshakeMs = 10_000;
/** The time for which an unreachable environment is tried again; it may be restarting. */
const defaultConnectMs = 60_000;
const againMs = 1_000;
const schemaMs = 10_000;
const pongMs = 10_000;

const result = z.object({
  observation: z.unknown().default({}),
  reward: z.union([z.number(), z.boolean().transform(Number)]).nullish(),
  done: z.boolean().default(false),
});
const reply = z.discriminatedUnion('type', [
  z.object({ type: z.literal('observation'), data: result }),
  z.object({ type: z.literal('error'), data: z.looseObject({ message: z.string(), code: z.string() }) }),
]);
/** The codes of errors that an action causes. After an error with any other code, the session is of no use. */
const refusals: readonly string[] = ['VALIDATION_ERROR', 'EXECUTION_ERROR'];
/** The code of an error that ends the session. */
const sessionError = 'SESSION_ERROR';

/** Connects to an environment, and tries again while it is away. Throws TemperFailure EnvironmentUnavailable. */
export async function connectEnvironment(
  at: NamedEnvironment,
  signal: AbortSignal,
  connectMs = defaultConnectMs,
): Promise<EnvironmentConnection> {
  const until = Date.now() + connectMs;
  for (;;) {
    try {
      return connectionOf(at, await openSocket(at, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (Date.now() > until) throw unavailable(at, errorMessage(error));
      await sleep(againMs, undefined, { signal });
    }
  }
}

function openSocket({ url, token }: NamedEnvironment, signal: AbortSignal): Promise<WebSocket> {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws`, {
    headers,
    handshakeTimeout: handshakeMs,
    maxPayload: messageBytes,
    perMessageDeflate: false,
  });
  return new Promise((resolve, reject) => {
    const stop = (): void => socket.terminate();
    signal.addEventListener('abort', stop, { once: true });
    socket.once('open', () => {
      signal.removeEventListener('abort', stop);
      resolve(socket);
    });
    socket.on('error', reject);
    socket.once('close', () => reject(new Error('it closed the connection')));
  });
}

function connectionOf(at: NamedEnvironment, socket: WebSocket): EnvironmentConnection {
  async function ask(message: object, signal: AbortSignal): Promise<EnvironmentReply> {
    const text = await exchange(socket, JSON.stringify(message), signal).catch((error: unknown) => {
      // A late reply would be mistaken for the reply to the next message.
      socket.terminate();
      throw unavailable(at, errorMessage(error), error);
    });
    const parsed = reply.safeParse(parse(text));
    if (!parsed.success) throw unavailable(at, `expected an observation or an error, got ${text.slice(0, 200)}`);
    const { type, data } = parsed.data;
    if (type === 'observation') return { ...data, reward: data.reward ?? null };
    if (refusals.includes(data.code)) return { refusal: data.message };
    const said = `${data.code}: ${data.message}`;
    throw unavailable(at, said, data.code === sessionError ? new Unanswered('failed', said) : undefined);
  }
  return {
    isAlive: () => answersPing(socket),
    reset: (data, signal) => ask({ type: 'reset', data }, signal),
    step: (data, signal) =>
      ask({ type: 'step', data }, signal).catch((error: unknown) => {
        if (error instanceof TemperFailure && error.cause instanceof Unanswered) return { without: error.cause.why };
        throw error;
      }),
    close() {
      if (socket.readyState === WebSocket.OPEN) socket.send('{"type":"close"}');
      socket.close();
    },
  };
}

/** Returns whether a socket answers a ping, and closes one that does not. */
function answersPing(socket: WebSocket): Promise<boolean> {
  if (socket.readyState !== WebSocket.OPEN) return Promise.resolve(false);
  return new Promise((resolve) => {
    const late = setTimeout(() => socket.terminate(), pongMs);
    function settle(alive: boolean): void {
      clearTimeout(late);
      socket.off('pong', onPong).off('close', onClose);
      resolve(alive);
    }
    const onPong = (): void => settle(true);
    const onClose = (): void => settle(false);
    socket.once('pong', onPong).once('close', onClose);
    socket.ping();
  });
}

/** The end of a wait for a reply that the message itself may have caused. */
class Unanswered extends Error {
  readonly why: NoReply['without'];

  constructor(why: NoReply['without'], message: string) {
    super(message);
    this.why = why;
  }
}

/** The code with which either side closes a connection because of a message that is too large for it. */
const tooLargeCode = 1009;
/** The code with which a server closes a connection because it failed at a message. */
const failedCode = 1011;
const refusedSize = 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';

/** Sends a message and waits for the next one. */
function exchange(socket: WebSocket, text: string, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const onMessage = (data: unknown): void => resolve(String(data));
  const tooLarge = (): Unanswered => new Unanswered('too-large', `a message was larger than ${messageBytes} bytes`);
  const onError = (error: Error & { readonly code?: string }): void => {
    if (error.code === refusedSize) reject(tooLarge());
  };
  const onClose = (code: number): void => {
    if (code === tooLargeCode) reject(tooLarge());
    else if (code === failedCode) reject(new Unanswered('failed', `it closed the connection with code ${code}`));
    else reject(new Error('it closed the connection'));
  };
  const onAbort = (): void => reject(lateness(signal));
  socket.once('message', onMessage).once('close', onClose).on('error', onError);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  socket.send(text, (error) => {
    if (error) reject(error);
  });
  return promise.finally(() => {
    socket.off('message', onMessage).off('close', onClose).off('error', onError);
    signal.removeEventListener('abort', onAbort);
  });
}

/** Returns the error of a wait that was ended: by its time limit, or because its caller no longer wants the reply. */
const lateness = ({ reason }: AbortSignal): Error =>
  reason instanceof DOMException && reason.name === 'TimeoutError'
    ? new Unanswered('late', 'it did not answer in time')
    : new Error('the wait for its answer was ended', { cause: reason });

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns the JSON schema of an environment's actions; null where it has none. */
export async function actionSchemaOf({ url, token }: NamedEnvironment, signal: AbortSignal): Promise<unknown> {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const schema = z.object({ action: z.record(z.string(), z.unknown()) });
  const answer = await httpCall({ method: 'GET', url: `${url}/schema`, headers, timeoutMs: schemaMs }, signal).catch(
    () => null,
  );
  const parsed = schema.safeParse(answer === null ? null : jsonOf(answer));
  return parsed.success ? parsed.data.action : null;
}

export const unavailable = ({ name, url }: NamedEnvironment, why: string, cause?: unknown): TemperFailure =>
  new TemperFailure('EnvironmentUnavailable', `environment ${name} at ${url}: ${why}; check its server`, { cause });
