import { invalidArguments, type ToolCall } from '../../../kits/chat-tokens/index.ts';
import type { ReplyHead } from '../dialect.ts';
import { jsonObject } from '../shared/json-object.ts';
import type { ReplyPart, TextPart } from '../shared/parts.ts';
import { type ClientTools, freeTextOf, type ToolAddress } from './tools.ts';

/** One entry of a response's `output`, and the events by which a stream sends it. */
export interface OutputItem {
  /** Returns the finished item. `isCut`: the reply's limit was reached inside this item. */
  finished(isCut: boolean): object;
  opening(): readonly StreamEvent[];
  growth(text: string): readonly StreamEvent[];
  closing(isCut: boolean): readonly StreamEvent[];
}

/** An event that has no sequence number yet. */
export type StreamEvent = Readonly<Record<string, unknown>> & { readonly type: string };

export function itemOf(part: ReplyPart, index: number, head: ReplyHead, tools: ClientTools): OutputItem {
  return part.kind === 'call' ? callItem(part.call, index, head, tools) : textItem(part, index, head);
}

const added = (index: number, item: object) => ({ type: 'response.output_item.added', output_index: index, item });
const done = (index: number, item: object) => ({ type: 'response.output_item.done', output_index: index, item });

interface TextKind {
  readonly idPrefix: string;
  /** The prefix of the types of the events that carry the text. */
  readonly event: string;
  /** Further fields of these events. */
  readonly more: object;
  contentPart(text: string): object;
  item(content: readonly object[]): object;
}

const textKinds: Record<TextPart['kind'], TextKind> = {
  text: {
    idPrefix: 'msg',
    event: 'response.output_text',
    more: { logprobs: [] },
    contentPart: (text) => ({ type: 'output_text', text, annotations: [], logprobs: [] }),
    item: (content) => ({ type: 'message', role: 'assistant', content }),
  },
  reasoning: {
    idPrefix: 'rs',
    event: 'response.reasoning_text',
    more: {},
    contentPart: (text) => ({ type: 'reasoning_text', text }),
    item: (content) => ({ type: 'reasoning', summary: [], content, encrypted_content: null }),
  },
};

function textItem({ kind, text }: TextPart, index: number, { key }: ReplyHead): OutputItem {
  const { idPrefix, event, more, contentPart, item } = textKinds[kind];
  const id = `${idPrefix}_${key}_${index}`;
  const position = { item_id: id, output_index: index, content_index: 0 };
  const finished = (isCut: boolean) => ({
    id,
    status: isCut ? 'incomplete' : 'completed',
    ...item([contentPart(text)]),
  });
  return {
    finished,
    opening: () => [
      added(index, { id, status: 'in_progress', ...item([]) }),
      { type: 'response.content_part.added', ...position, part: contentPart('') },
    ],
    growth: (delta) => [{ type: `${event}.delta`, ...position, delta, ...more }],
    closing: (isCut) => [
      { type: `${event}.done`, ...position, text, ...more },
      { type: 'response.content_part.done', ...position, part: contentPart(text) },
      done(index, finished(isCut)),
    ],
  };
}

interface CallKind {
  readonly idPrefix: string;
  readonly type: string;
  /** The prefix of the types of the events that carry the input; null when the whole item does. */
  readonly event: string | null;
  /** The field that holds the tool's input. */
  readonly field: string;
  inputOf(call: ToolCall): unknown;
  /** Further fields of the item. */
  readonly more?: object;
}

const callKinds: Record<ToolAddress['type'], CallKind> = {
  function: {
    idPrefix: 'fc',
    type: 'function_call',
    event: 'response.function_call_arguments',
    field: 'arguments',
    inputOf: (call) => call.arguments,
  },
  custom: {
    idPrefix: 'ctc',
    type: 'custom_tool_call',
    event: 'response.custom_tool_call_input',
    field: 'input',
    inputOf: freeTextOf,
  },
  search: {
    idPrefix: 'ts',
    type: 'tool_search_call',
    event: null,
    field: 'arguments',
    inputOf: ({ arguments: text }) => jsonObject(text) ?? { [invalidArguments]: text },
    more: { execution: 'client' },
  },
};

/** Makes the item of a call. It is never cut: a call that the model did not end is text. */
function callItem(call: ToolCall, index: number, { key }: ReplyHead, tools: ClientTools): OutputItem {
  const { type: kind, namespace, name } = tools.addressOf(call.name);
  const { idPrefix, type, event, field, inputOf, more = {} } = callKinds[kind];
  const id = `${idPrefix}_${key}_${index}`;
  const position = { item_id: id, output_index: index };
  const input = inputOf(call);
  const itemWith = (status: string, given: unknown) => ({
    id,
    type,
    status,
    call_id: call.id,
    ...(kind === 'search' ? {} : { name }),
    ...(namespace === null ? {} : { namespace }),
    ...more,
    [field]: given,
  });
  const isWhole = event === null;
  return {
    finished: () => itemWith('completed', input),
    opening: () => [added(index, itemWith('in_progress', isWhole ? input : ''))],
    growth: () => (isWhole ? [] : [{ type: `${event}.delta`, ...position, delta: input }]),
    closing: () => [
      ...(isWhole ? [] : [{ type: `${event}.done`, ...position, name, [field]: input }]),
      done(index, itemWith('completed', input)),
    ],
  };
}
