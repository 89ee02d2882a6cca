import type { Tool } from '../conversation.ts';
import type { TokenTable } from '../token-table.ts';

/** Turns the ids that a model samples into what it says, as they come. */
export interface ReplyParser {
  push(ids: readonly number[]): readonly ReplyEvent[];
  /** No more ids: gives what was held back. */
  end(): readonly ReplyEvent[];
}

export type ReplyEvent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'call'; readonly call: ParsedCall }
  /** To be counted; its text follows as `text`, so that the agent sees what was sampled. */
  | { readonly kind: 'faulty-call'; readonly call: ParsedCall };

/**
 * Calls that the agent gets, so that it answers them: `ok`; `unknown-tool`, of a tool that was not offered (when any was);
 * `mistyped`, with an argument that its schema does not allow, given as text. All others stay text: `malformed` is none of
 * the family's syntax.
 */
export type CallStatus =
  | 'ok'
  | 'unknown-tool'
  | 'mistyped'
  | 'unclosed'
  | 'malformed'
  | 'invalid-json'
  | 'missing-name'
  | 'invalid-arguments';

export interface ParsedCall {
  readonly status: CallStatus;
  /** As sampled; null in a family whose calls have none. */
  readonly id: string | null;
  /** Empty unless the call is well-formed. */
  readonly name: string;
  /** JSON text of an object, as sampled. */
  readonly arguments: string;
  /** All text of the call, delimiters included. */
  readonly raw: string;
}

export interface ParserInput extends ReplyContext {
  /** The template knows `<think>`; where it does not, that is text to it, and would be lost as reasoning. */
  readonly thinks: boolean;
}

export interface ReplyContext {
  readonly tokens: TokenTable;
  /** What the request offers. */
  readonly tools: readonly Tool[];
  /** What stands in the prompt behind the last reply: a template may have opened the reasoning there already. */
  readonly promptIds: readonly number[];
}

export type ParserFactory = (input: ParserInput) => ReplyParser;
