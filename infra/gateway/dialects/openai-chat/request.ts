import { z } from 'zod';
import type { Conversation, Message, Tool, ToolCall } from '../../../kits/chat-tokens/index.ts';
import { GatewayError } from '../../gateway-error.ts';
import { content, contentOf, type TextParts } from '../shared/content.ts';
import {
  callArguments,
  createItemReader,
  items,
  jsonSchema,
  optional,
  orElse,
  parse,
  quoted,
  toolOf,
} from '../shared/reading.ts';
import { samplingFields } from '../shared/sampling-fields.ts';

const toolCall = z.object({
  id: orElse(z.string(), ''),
  function: optional(z.object({ name: z.string(), arguments: callArguments })),
});
const message = z.object({
  role: z.string(),
  content,
  reasoning_content: z.string().nullish(),
  reasoning: z.unknown().optional(),
  tool_calls: z.array(toolCall).nullish(),
  tool_call_id: z.string().nullish(),
  name: z.string().nullish(),
});
type WireMessage = z.output<typeof message>;

const tool = z.looseObject({
  type: z.string(),
  function: optional(
    z.looseObject({ name: z.string().min(1), description: z.string().nullish(), parameters: jsonSchema }),
  ),
});

const tokens = z.int().positive().nullish();

/** The fields that temper reads; all others are tolerated. */
const chatRequest = z.looseObject({
  model: orElse(z.string(), 'policy'),
  messages: items,
  tools: z.array(tool).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: tokens,
  max_completion_tokens: tokens,
  ...samplingFields,
  n: z.int().nullish(),
});
export type ChatRequest = z.output<typeof chatRequest>;

export function parseChatRequest(body: unknown): ChatRequest {
  const request = parse(chatRequest, body);
  if ((request.n ?? 1) !== 1) throw new GatewayError('unsupported', `n: expected 1, got ${request.n}`);
  return request;
}

export function conversationOf({ messages, tools }: ChatRequest): Conversation {
  return { messages: readMessages(messages, 'messages'), tools: (tools ?? []).map(readTool) };
}

const readMessages = createItemReader((item, at) => readMessage(parse(message, item, at), at));

function readMessage(wire: WireMessage, at: string): Message {
  const read = contentOf(wire.content, `${at}.content`, textParts);
  const { text } = read;
  switch (wire.role) {
    case 'system':
    case 'developer':
      return { role: 'system', text };
    case 'user':
      return { role: 'user', ...read };
    case 'tool':
      return { role: 'tool', callId: wire.tool_call_id ?? '', name: wire.name ?? null, ...read };
    case 'assistant': {
      const reasoning = wire.reasoning_content ?? (typeof wire.reasoning === 'string' ? wire.reasoning : '');
      return { role: 'assistant', text, reasoning, toolCalls: (wire.tool_calls ?? []).map(readCall(at)) };
    }
    default:
      throw new GatewayError(
        'unsupported',
        `${at}.role: expected system, developer, user, assistant or tool, got ${quoted(wire.role)}`,
      );
  }
}

const textParts: TextParts = {
  fields: new Map([
    ['text', 'text'],
    ['refusal', 'refusal'],
  ]),
  separator: '\n',
};

const readCall =
  (at: string) =>
  (wire: z.output<typeof toolCall>, index: number): ToolCall => {
    if (wire.function === undefined) {
      throw new GatewayError('unsupported', `${at}.tool_calls.${index}: expected a call of type function`);
    }
    return { id: wire.id, name: wire.function.name, arguments: wire.function.arguments };
  };

function readTool(wire: z.output<typeof tool>, index: number): Tool {
  const { function: described } = wire;
  if (described === undefined)
    throw new GatewayError('unsupported', `tools.${index}: expected a tool of type function`);
  return toolOf(described, `tools.${index}.function.parameters`);
}
