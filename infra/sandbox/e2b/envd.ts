import { Agent, type Dispatcher, request } from 'undici';
import { readHead } from '../../process/head-buffer.ts';
import type { EnvdAccess } from './api.ts';
import { endOfStream, frame, metrics, type ProcessEvent, processEvent, readFrames, rpcError } from './wire.ts';

// The SDK runs commands, too, but decodes their output as text and keeps all of it. So temper speaks envd's protocol itself.

export interface EnvdCommand {
  /** The name of the account in the sandbox. */
  readonly user: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Whether the command gets an input; otherwise its stdin is empty. */
  readonly input: boolean;
}

export interface EnvdProcess {
  /** The output and the end of the process. It throws if the connection breaks before. Nothing is read ahead. */
  readonly events: AsyncIterable<ProcessEvent>;
  /** Writes to its input, in order. Throws `EnvdError` if it no longer reads. */
  write(bytes: Uint8Array): Promise<void>;
  endInput(): Promise<void>;
  /** Stops listening and leaves the process running. */
  release(cause?: Error): void;
}

/** The daemon in each sandbox that runs commands there. */
export interface Envd {
  /** Starts a command, and resolves once it runs. It outlives its caller. */
  start(command: EnvdCommand, signal: AbortSignal): Promise<EnvdProcess>;
  /** Returns the bytes in use on the sandbox's disk. */
  diskUsed(): Promise<number>;
  /** Whether the daemon answers. */
  answers(): Promise<boolean>;
}

/** An answer of envd, or of the proxy before it, that is an error. */
export class EnvdError extends Error {
  override readonly name = 'EnvdError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(`${code}: ${message}`);
    this.code = code;
  }
}

const envdPort = '49983';
const answerMs = 60_000;
const probeMs = 5_000;
/** Seconds between signs of life on a silent stream, so that no proxy takes it for dead. */
const signOfLifeSec = '50';

/** Creates the connections to envd that all sandboxes of a provider share. A stream may be silent for as long as its command. */
export const createEnvdConnections = (): Agent => new Agent({ headersTimeout: answerMs, bodyTimeout: 0 });

export function createEnvd(access: EnvdAccess, dispatcher: Dispatcher): Envd {
  return new HttpEnvd(access, dispatcher);
}

class HttpEnvd implements Envd {
  readonly #access: EnvdAccess;
  readonly #dispatcher: Dispatcher;

  constructor(access: EnvdAccess, dispatcher: Dispatcher) {
    this.#access = access;
    this.#dispatcher = dispatcher;
  }

  async start({ user, argv: [cmd, ...args], env, input }: EnvdCommand, signal: AbortSignal): Promise<EnvdProcess> {
    const body = frame({ process: { cmd, args, envs: env, cwd: '/' }, stdin: input });
    const stop = new AbortController();
    const headers = {
      'content-type': 'application/connect+json',
      authorization: `Basic ${Buffer.from(`${user}:`).toString('base64')}`,
      'keepalive-ping-interval': signOfLifeSec,
    };
    const answer = await this.#post('/process.Process/Start', body, headers, AbortSignal.any([stop.signal, signal]));
    const events = eventsOf(answer.body);
    const first = await events.next();
    const pid = first.done ? undefined : first.value.start?.pid;
    if (pid === undefined) {
      stop.abort();
      throw new EnvdError('unknown', 'expected the start of a process, got something else');
    }
    const process = { process: { pid } };
    return {
      events,
      write: async (bytes) => {
        for (let at = 0; at < bytes.length; at += inputBytes) {
          const stdin = Buffer.from(bytes.subarray(at, at + inputBytes)).toString('base64');
          await this.#call('/process.Process/SendInput', { ...process, input: { stdin } });
        }
      },
      endInput: () => this.#call('/process.Process/CloseStdin', process),
      release: (cause) => {
        answer.body.once('error', () => undefined);
        answer.body.destroy(cause);
      },
    };
  }

  async diskUsed(): Promise<number> {
    const { statusCode, body } = await this.#request('/metrics', {
      method: 'GET',
      signal: AbortSignal.timeout(answerMs),
    });
    const text = (await readHead(body, answerBytes)).toString('utf8');
    if (statusCode !== 200) throw errorOf(statusCode, text);
    return metrics.parse(JSON.parse(text)).disk_used;
  }

  async answers(): Promise<boolean> {
    try {
      const { statusCode, body } = await this.#request('/health', {
        method: 'GET',
        signal: AbortSignal.timeout(probeMs),
      });
      await body.dump();
      return statusCode < 300;
    } catch {
      return false;
    }
  }

  async #call(path: string, message: unknown): Promise<void> {
    const headers = { 'content-type': 'application/json' };
    const { body } = await this.#post(path, Buffer.from(JSON.stringify(message)), headers);
    await body.dump();
  }

  async #post(path: string, body: Buffer, headers: Record<string, string>, signal?: AbortSignal) {
    const all = { ...headers, 'connect-protocol-version': '1' };
    const answer = await this.#request(path, { method: 'POST', headers: all, body, ...(signal && { signal }) });
    if (answer.statusCode === 200) return answer;
    throw errorOf(answer.statusCode, (await readHead(answer.body, answerBytes)).toString('utf8'));
  }

  #request(path: string, options: RequestOptions): Promise<Dispatcher.ResponseData> {
    const { id, url, token } = this.#access;
    return request(new URL(path, url), {
      ...options,
      dispatcher: this.#dispatcher,
      headers: {
        ...options.headers,
        'e2b-sandbox-id': id,
        'e2b-sandbox-port': envdPort,
        ...(token !== undefined && { 'x-access-token': token }),
      },
    });
  }
}

interface RequestOptions {
  readonly method: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly signal?: AbortSignal;
}

/** Bytes that are read of an answer that is no stream: it comes out of the sandbox. */
const answerBytes = 64 * 2 ** 10;
/** Bytes of an input that one request carries. */
const inputBytes = 2 ** 20;

async function* eventsOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<ProcessEvent, undefined> {
  for await (const { last, text } of readFrames(body)) {
    const message: unknown = JSON.parse(text);
    if (!last) {
      const { event } = processEvent.parse(message);
      yield event;
      if (event.end !== undefined) return undefined;
      continue;
    }
    const { error } = endOfStream.parse(message);
    throw error === undefined
      ? new EnvdError('unknown', 'the stream of a process ended before the process')
      : new EnvdError(error.code, error.message);
  }
  throw new EnvdError('unknown', 'the stream of a process was cut');
}

/** Reads an error of envd or of the proxy before it, which answers 502 for a sandbox that it does not know. */
function errorOf(status: number, text: string): EnvdError {
  try {
    const parsed = rpcError.safeParse(JSON.parse(text));
    if (parsed.success) return new EnvdError(parsed.data.code, parsed.data.message);
  } catch {
    // A proxy may answer with a page.
  }
  return new EnvdError(`status ${status}`, text.slice(0, 300));
}
