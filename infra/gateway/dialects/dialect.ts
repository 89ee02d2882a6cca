import type { FinishReason } from '../../../workflows/contracts/trace.ts';
import type { AssistantMessage, Conversation } from '../../kits/chat-tokens/index.ts';
import type { GatewayError } from '../gateway-error.ts';
import type { Delta, ModelRequest } from '../model-call.ts';

/** One wire format of model calls. Its input from clients is untrusted; its output must be what the format's SDKs read. */
export interface Dialect {
  readonly name: string;
  readonly path: string;
  /** The key of a body under which the conversation is listed. */
  readonly listKey: string;
  /** Parses a body into a conversation. Throws a GatewayError: `malformed` or `unsupported`. */
  read(body: unknown): DialectRequest;
  /** Null when the format has no call that counts tokens. */
  readonly counting: TokenCounting | null;
  /** A header that all its clients send, which identifies them at paths that dialects share; null when there is none. */
  readonly clientHeader: string | null;
  readonly models: ModelList;
  error(error: GatewayError): ErrorBody;
}

/** The call that counts a prompt's tokens. */
export interface TokenCounting {
  readonly path: string;
  /** Parses a body, as the dialect's `read` does. */
  read(body: unknown): Conversation;
  reply(tokens: number): unknown;
}

/** The replies to `GET /v1/models`. */
export interface ModelList {
  all(name: string): unknown;
  one(name: string): unknown;
}

export interface DialectRequest extends ModelRequest {
  /** Returns the body of a reply that is sent as a whole. */
  whole(reply: FinishedReply): unknown;
  stream(head: ReplyHead): StreamWriter;
}

/** The part of a reply that is known before the model samples. It is the same for every client that follows a turn. */
export interface ReplyHead {
  readonly key: string;
  readonly createdAt: number;
  readonly promptTokens: number;
}

export interface FinishedReply extends ReplyHead {
  readonly reply: AssistantMessage;
  readonly finishReason: FinishReason;
  readonly sampledTokens: number;
}

/** Writes the text of server-sent events, in the order begin, delta*, finish | fail. */
export interface StreamWriter {
  begin(): string;
  delta(delta: Delta): string;
  /** Returns a keep-alive, which may stand between any two other texts, and which the relay recognizes. Changes no other text. */
  keepAlive(): string;
  /** Returns the tool calls and the end of the stream; called once the turn is durable. */
  finish(reply: FinishedReply): string;
  fail(error: GatewayError): string;
  /** Whether clients understand the error only inside a stream, even before any delta. Otherwise it gets an HTTP status. */
  failsInStream(error: GatewayError): boolean;
}

export interface ErrorBody {
  readonly status: number;
  readonly body: unknown;
}
