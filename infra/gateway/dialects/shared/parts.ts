import type { AssistantMessage, ToolCall } from '../../../kits/chat-tokens/index.ts';
import type { Delta } from '../../turns/reply-stream.ts';

/** A reply in the order in which APIs list it: what the model thought, what it says, what it calls. */
export type Part = SpokenPart | { readonly kind: 'call'; readonly call: ToolCall };
export interface SpokenPart {
  readonly kind: Delta['kind'];
  readonly text: string;
}

/** Never empty: clients take a reply without any part for a broken one. */
export function partsOf({ reasoning, text, toolCalls }: AssistantMessage): Part[] {
  const parts: Part[] = [];
  if (reasoning !== '') parts.push({ kind: 'reasoning', text: reasoning });
  if (text !== '' || toolCalls.length === 0) parts.push({ kind: 'text', text });
  return [...parts, ...toolCalls.map((call): Part => ({ kind: 'call', call }))];
}

/** How a stream tells of one part: it opens empty, grows and closes. */
export interface PartFormat {
  open(part: Part, index: number): string;
  grow(part: Part, index: number, text: string): string;
  /** With the whole part. `isLast` can be true only once the reply is finished. */
  close(part: Part, index: number, isLast: boolean): string;
}

/** Streams a reply part by part. A model that thinks, speaks and thinks again gives more parts here than in `partsOf`. */
export function createPartStream(format: PartFormat) {
  let current: SpokenPart | null = null;
  let index = -1;
  let spoke = false;

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
      spoke ||= kind === 'text';
      written += format.open(current, index);
    }
    current = { kind, text: (current?.text ?? '') + text };
    return text === '' ? written : written + format.grow(current, index, text);
  }

  function sayCall(call: ToolCall, isLast: boolean): string {
    const part: Part = { kind: 'call', call };
    index += 1;
    return format.open(part, index) + format.grow(part, index, call.arguments) + format.close(part, index, isLast);
  }

  return {
    delta,
    finish({ toolCalls }: AssistantMessage): string {
      const silent = !spoke && toolCalls.length === 0 ? delta({ kind: 'text', text: '' }) : '';
      const closed = closeCurrent(toolCalls.length === 0);
      const calls = toolCalls.map((call, at) => sayCall(call, at === toolCalls.length - 1));
      return silent + closed + calls.join('');
    },
  };
}
