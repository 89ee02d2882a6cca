import type { AssistantMessage, ToolCall } from '../../../kits/chat-tokens/index.ts';
import type { Delta } from '../../model-call.ts';

/** A part of a reply. APIs list the reasoning first, then the text, then the calls. */
export type ReplyPart = TextPart | { readonly kind: 'call'; readonly call: ToolCall };
export interface TextPart {
  readonly kind: Delta['kind'];
  readonly text: string;
}

/** Splits a reply into parts, at least one: clients reject a reply without any part. */
export function partsOf({ reasoning, text, toolCalls }: AssistantMessage): ReplyPart[] {
  const parts: ReplyPart[] = [];
  if (reasoning !== '') parts.push({ kind: 'reasoning', text: reasoning });
  if (text !== '' || toolCalls.length === 0) parts.push({ kind: 'text', text });
  return [...parts, ...toolCalls.map((call): ReplyPart => ({ kind: 'call', call }))];
}

/** Writes one part of a stream: it opens empty, grows and closes. */
export interface PartFormat {
  open(part: ReplyPart, index: number): string;
  grow(part: ReplyPart, index: number, text: string): string;
  /** Closes the whole part. `isLast` can be true only once the reply is finished. */
  close(part: ReplyPart, index: number, isLast: boolean): string;
}

/** Streams a reply part by part. Reasoning, text and reasoning again are more parts here than in `partsOf`. */
export function createPartStream(format: PartFormat) {
  let current: TextPart | null = null;
  let index = -1;
  let hasText = false;

  function closeCurrent(isLast: boolean): string {
    const closed = current === null ? '' : format.close(current, index, isLast);
    current = null;
    return closed;
  }

  function delta({ kind, text }: Delta): string {
    let written = '';
    if (current?.kind !== kind) {
      written = closeCurrent(false);
      index += 1;
      current = { kind, text: '' };
      hasText ||= kind === 'text';
      written += format.open(current, index);
    }
    current = { kind, text: (current?.text ?? '') + text };
    return text === '' ? written : written + format.grow(current, index, text);
  }

  function writeCall(call: ToolCall, isLast: boolean): string {
    const part: ReplyPart = { kind: 'call', call };
    index += 1;
    return format.open(part, index) + format.grow(part, index, call.arguments) + format.close(part, index, isLast);
  }

  return {
    delta,
    finish({ toolCalls }: AssistantMessage): string {
      const emptyText = !hasText && toolCalls.length === 0 ? delta({ kind: 'text', text: '' }) : '';
      const closed = closeCurrent(toolCalls.length === 0);
      const calls = toolCalls.map((call, at) => writeCall(call, at === toolCalls.length - 1));
      return emptyText + closed + calls.join('');
    },
  };
}
