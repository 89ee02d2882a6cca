import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

// This module is not imported, because an import would load undici; see relay/proxy.ts.
const { request } = process.getBuiltinModule('node:http');

export interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

export type Message =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string | null; readonly tool_calls?: readonly ToolCall[] }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };

export type AssistantMessage = Extract<Message, { role: 'assistant' }>;

/** The model, called through the relay by the Chat Completions API. */
export interface Model {
  /** Returns the model's reply. Retries transient failures; throws a `ModelError` for any other. */
  reply(messages: readonly Message[]): Promise<AssistantMessage>;
}

/** An error that a retry would not change. `code` is the error code of the API. */
export class ModelError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export interface ModelOptions {
  readonly baseUrl: string;
  readonly secret: string;
  /** Default: none. */
  readonly tools?: readonly object[];
}

/** The relay itself retries while no gateway is reachable, so a few attempts are enough here. */
const retries = { attempts: 4, firstWaitMs: 500 } as const;

export function createModel({ baseUrl, secret, tools }: ModelOptions): Model {
  const url = new URL(`${baseUrl}/v1/chat/completions`);

  return {
    async reply(messages) {
      const body = JSON.stringify({ model: 'policy', messages, tools });
      for (let attempt = 1; ; attempt += 1) {
        const answer = await post(url, secret, body, { 'x-stainless-retry-count': String(attempt - 1) }).catch(
          (error: Error) => ({ status: 0, body: error.message }),
        );
        if (answer.status === 200) return readReply(answer.body);
        const transient = answer.status === 0 || answer.status >= 500;
        if (!transient || attempt === retries.attempts) throw modelError(answer);
        await sleep(retries.firstWaitMs * 2 ** (attempt - 1));
      }
    },
  };
}

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export function post(
  url: URL,
  secret: string,
  body: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...more,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      authorization: `Bearer ${secret}`,
    };
    const sent = request(url, { method: 'POST', headers }, (reply) => {
      text(reply).then((content) => resolve({ status: reply.statusCode ?? 0, body: content }), reject);
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

function readReply(body: string): AssistantMessage {
  const parsed: { readonly choices?: readonly { readonly message?: AssistantMessage }[] } = JSON.parse(body);
  const message = parsed.choices?.[0]?.message;
  if (message === undefined) throw new ModelError('no_message', `expected a message in the reply, got ${body}`);
  const { content = null, tool_calls: calls = [] } = message;
  return { role: 'assistant', content, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
}

function modelError({ status, body }: Answer): ModelError {
  const described = `the gateway answered ${status}: ${body.slice(0, 500)}`;
  try {
    const { error }: { error?: { code?: unknown } } = JSON.parse(body);
    return new ModelError(typeof error?.code === 'string' ? error.code : String(status), described);
  } catch {
    return new ModelError(String(status), described);
  }
}
