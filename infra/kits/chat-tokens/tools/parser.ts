import type { Tool } from '../conversation.ts';
import type { TokenTable } from '../token-table.ts';

/** Turns sampled ids into text, reasoning and tool calls while they arrive. */
export interface ReplyParser {
  /** Returns the events that are certain by now. */
  push(ids: readonly number[]): readonly ReplyEvent[];
  /** Returns the events that were held back. No more ids may follow. */
  end(): readonly ReplyEvent[];
}

export type ReplyEvent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'call'; readonly call: ParsedCall }
  /** A call that the agent does not get. It is counted, and its text follows as `text`, so that the agent sees what was sampled. */
  | { readonly kind: 'faulty-call'; readonly call: ParsedCall };

/**
 * The agent gets the calls with status `ok`; `unknown-tool`, for a tool that was not offered (when any was); `mistyped`, with
 * an argument that its schema does not allow, which is passed as text; and `repaired`, whose delimiters or keys deviate from
 * the family's syntax in a way that its file states. All others stay text. `ambiguous` means that more than one place may be
 * the call's end, `malformed` that it does not follow the family's syntax.
 */
export type CallStatus =
  | 'ok'
  | 'unknown-tool'
  | 'mistyped'
  | 'repaired'
  | 'ambiguous'
  | 'unclosed'
  | 'malformed'
  | 'invalid-json'
  | 'missing-name'
  | 'invalid-arguments';

export interface ParsedCall {
  readonly status: CallStatus;
  /** The id as sampled; null in a family whose calls have none. */
  readonly id: string | null;
  /** Empty unless the call is well-formed. */
  readonly name: string;
  /** The JSON text of an object, as sampled. */
  readonly arguments: string;
  /** The whole text of the call, delimiters included. */
  readonly raw: string;
}

export interface ParserInput extends ReplyContext {
  /** Whether the template knows `<think>`. Where it does not, `<think>` is plain text and would be lost if read as reasoning. */
  readonly thinks: boolean;
}

export interface ReplyContext {
  readonly tokens: TokenTable;
  /** The tools that the request offers. */
  readonly tools: readonly Tool[];
  /** The prompt's ids after the last reply: the template may have opened the reasoning there already. */
  readonly promptIds: readonly number[];
}

export type ParserFactory = (input: ParserInput) => ReplyParser;
