import type { FinishReason } from '../../../workflows/contracts/trace.ts';
import type { AssistantMessage, Conversation } from '../../kits/chat-tokens/index.ts';
import type { GatewayError } from '../gateway-error.ts';
import type { ModelRequest } from '../model-request.ts';
import type { Delta } from '../turns/reply-stream.ts';

/** One wire format of model calls. What it gets from clients is hostile; what it writes must be what its SDKs read. */
export interface Dialect {
  readonly name: string;
  readonly path: string;
  /** Parses a body into the one conversation type. Throws a GatewayError: `malformed` or `unsupported`. */
  read(body: unknown): DialectRequest;
  /** Null when the format has no call that counts tokens. */
  readonly counting: TokenCounting | null;
  /** A header that all its clients send: tells them apart at paths which several dialects share. */
  readonly clientHeader: string | null;
  readonly models: ModelList;
  error(refusal: GatewayError): ErrorBody;
}

/** A call that says how long a prompt would be. */
export interface TokenCounting {
  readonly path: string;
  /** As `read` of the dialect. */
  read(body: unknown): Conversation;
  reply(tokens: number): unknown;
}

/** How `GET /v1/models` is answered. */
export interface ModelList {
  all(name: string): unknown;
  one(name: string): unknown;
}

export interface DialectRequest extends ModelRequest {
  /** The body of a reply that is sent as a whole. */
  whole(reply: FinishedReply): unknown;
  stream(head: ReplyHead): StreamWriter;
}

/** What is known before the model says anything. The same for every client that follows a turn. */
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

/** Text of server-sent events, in the order begin, delta*, finish | fail. */
export interface StreamWriter {
  begin(): string;
  delta(delta: Delta): string;
  /** Says between any two others that the reply is still on its way; one that the relay knows for it. Changes no other text. */
  keepAlive(): string;
  /** Tool calls and all that ends the stream; called once the turn is durable. */
  finish(reply: FinishedReply): string;
  fail(refusal: GatewayError): string;
  /** Whether clients understand it only at the end of a stream, even when nothing was said: else it gets its own status. */
  failsInStream(refusal: GatewayError): boolean;
}

export interface ErrorBody {
  readonly status: number;
  readonly body: unknown;
}
