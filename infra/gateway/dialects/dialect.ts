import type { FinishReason } from '../../../workflows/contracts/trace.ts';
import type { AssistantMessage } from '../conversation.ts';
import type { ModelRequest } from '../model-request.ts';
import type { Refusal } from '../refusal.ts';
import type { Delta } from '../speech.ts';

/** One wire format of model calls. What it gets from clients is hostile; what it writes must be what its SDKs read. */
export interface Dialect {
  readonly name: string;
  readonly path: string;
  /** Parses a body into the one conversation type. Throws a Refusal: `malformed` or `unsupported`. */
  read(body: unknown): DialectRequest;
  error(refusal: Refusal): ErrorBody;
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
}

export interface FinishedReply extends ReplyHead {
  readonly reply: AssistantMessage;
  readonly finishReason: FinishReason;
  readonly promptTokens: number;
  readonly sampledTokens: number;
}

/** Text of server-sent events, in the order begin, delta*, finish | fail. */
export interface StreamWriter {
  begin(): string;
  delta(delta: Delta): string;
  /** Tool calls and all that ends the stream; called once the turn is durable. */
  finish(reply: FinishedReply): string;
  fail(refusal: Refusal): string;
}

export interface ErrorBody {
  readonly status: number;
  readonly body: unknown;
}
