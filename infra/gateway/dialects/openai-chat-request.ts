import { z } from 'zod';
import { nestsWithin } from '../canonical.ts';
import type { Conversation, Message, Tool, ToolCall } from '../conversation.ts';
import { limits } from '../limits.ts';
import { Refusal } from '../refusal.ts';

const part = z.looseObject({ type: z.string() });
const content = z.union([z.string(), z.null(), z.array(part)]).optional();
const toolCall = z.looseObject({
  id: z.string().default(''),
  type: z.string().default('function'),
  function: z.looseObject({ name: z.string(), arguments: z.string().default('{}') }).optional(),
});
const message = z.looseObject({
  role: z.string(),
  content,
  reasoning_content: z.string().nullish(),
  reasoning: z.unknown().optional(),
  tool_calls: z.array(toolCall).nullish(),
  tool_call_id: z.string().optional(),
  name: z.string().optional(),
});
type WireMessage = z.output<typeof message>;

const tool = z.looseObject({
  type: z.string(),
  function: z
    .looseObject({
      name: z.string().min(1),
      description: z.string().nullish(),
      parameters: z.record(z.string(), z.unknown()).nullish(),
    })
    .optional(),
});

const tokens = z.int().positive().nullish();

/** Fields that temper reads; all others are tolerated. */
export const chatRequest = z.looseObject({
  model: z.string().default('policy'),
  messages: z.array(message).min(1),
  tools: z.array(tool).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: tokens,
  max_completion_tokens: tokens,
  n: z.int().nullish(),
});
export type ChatRequest = z.output<typeof chatRequest>;

export function parseChatRequest(body: unknown): ChatRequest {
  const parsed = chatRequest.safeParse(body);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new Refusal('malformed', `${issue?.path.join('.') || 'body'}: ${issue?.message ?? 'not understood'}`);
  }
  if ((parsed.data.n ?? 1) !== 1) throw new Refusal('unsupported', `n: expected 1, got ${parsed.data.n}`);
  return parsed.data;
}

export function conversationOf({ messages, tools }: ChatRequest): Conversation {
  return { messages: messages.map(readMessage), tools: (tools ?? []).map(readTool) };
}

function readMessage(wire: WireMessage, index: number): Message {
  const at = `messages.${index}`;
  const text = textOf(wire.content, at);
  switch (wire.role) {
    case 'system':
    case 'developer':
      return { role: 'system', text };
    case 'user':
      return { role: 'user', text };
    case 'tool':
      return { role: 'tool', callId: wire.tool_call_id ?? '', name: wire.name ?? null, text };
    case 'assistant': {
      const reasoning = wire.reasoning_content ?? (typeof wire.reasoning === 'string' ? wire.reasoning : '');
      return { role: 'assistant', text, reasoning, toolCalls: (wire.tool_calls ?? []).map(readCall(at)) };
    }
    default:
      throw new Refusal(
        'unsupported',
        `${at}.role: expected system, developer, user, assistant or tool, got ${JSON.stringify(wire.role.slice(0, 80))}`,
      );
  }
}

function textOf(value: WireMessage['content'], at: string): string {
  if (typeof value === 'string') return value;
  return (value ?? [])
    .map((item, index) => {
      const text = item.type === 'refusal' ? item.refusal : item.text;
      if ((item.type === 'text' || item.type === 'refusal') && typeof text === 'string') return text;
      throw new Refusal(
        'unsupported',
        `${at}.content.${index}: expected a part of type text, got ${JSON.stringify(item.type.slice(0, 80))}; this model reads text only`,
      );
    })
    .join('\n');
}

const readCall =
  (at: string) =>
  (wire: z.output<typeof toolCall>, index: number): ToolCall => {
    if (wire.function === undefined) {
      throw new Refusal('unsupported', `${at}.tool_calls.${index}: expected a call of type function`);
    }
    return { id: wire.id, name: wire.function.name, arguments: wire.function.arguments };
  };

function readTool(wire: z.output<typeof tool>, index: number): Tool {
  const { function: described } = wire;
  if (described === undefined) throw new Refusal('unsupported', `tools.${index}: expected a tool of type function`);
  const { name, description, parameters } = described;
  if (!nestsWithin(parameters, limits.nesting)) {
    throw new Refusal('malformed', `tools.${index}.function.parameters: nested more than ${limits.nesting} deep`);
  }
  return { name, description: description ?? null, parameters: parameters ?? null };
}
