import { nestsWithin } from '../canonical.ts';
import type { Conversation, Message, Tool, ToolCall } from '../conversation.ts';
import { limits } from '../limits.ts';
import { Refusal } from '../refusal.ts';
import type { Model } from './model.ts';

/** The prompt of a conversation from its first token to where the model's reply begins. */
export function renderFull(model: Model, conversation: Conversation): number[] {
  return model.tokens.encode(renderText(model, conversation.messages, conversation.tools, 'reply'));
}

/**
 * The ids to append to a branch that ends in `lastSampledId`, so that `messages` follow the model's reply and the next
 * reply can begin: the rest of the turn's closing, the messages, the opening of the reply. Its cost depends on the new
 * messages only. Null when the template writes what came before differently once messages follow it in a way that can't
 * be told apart: then only a full render is right.
 */
export function renderSuffix(
  model: Model,
  messages: readonly Message[],
  lastSampledId: number | undefined,
): number[] | null {
  const { closing } = model;
  const head = dummyHead(messages);
  const before = head === plainHead ? closing?.text : afterSentinel(model, head, 'last-message');
  const after = afterSentinel(model, [...head, ...messages], 'reply');
  if (closing === null || before === undefined || before === null || !after?.startsWith(before)) return null;
  const ids = model.tokens.encode(closing.text + after.slice(before.length));
  const sampled = lastSampledId === undefined ? -1 : closing.ids.indexOf(lastSampledId);
  return ids.slice(sampled + 1);
}

/** What a template writes behind every reply; null when that can't be told from the reply. */
export interface Closing {
  readonly text: string;
  readonly ids: readonly number[];
}

export function closingOf(model: Omit<Model, 'closing'>): Closing | null {
  const text = afterSentinel(model, plainHead, 'last-message');
  return text === null ? null : { text, ids: model.tokens.encode(text) };
}

const sentinel = 'temper-reply-ends-here';

const plainHead: readonly Message[] = [
  { role: 'user', text: 'x' },
  { role: 'assistant', text: sentinel, reasoning: '', toolCalls: [] },
];

/** A conversation whose last reply calls as many tools as `messages` answers: some templates refuse a lone result. */
function dummyHead(messages: readonly Message[]): readonly Message[] {
  const toolCalls: ToolCall[] = [];
  for (const message of messages) {
    if (message.role !== 'tool') break;
    toolCalls.push({ id: message.callId, name: message.name ?? 'tool', arguments: '{}' });
  }
  if (toolCalls.length === 0) return plainHead;
  return [
    { role: 'user', text: 'x' },
    { role: 'assistant', text: sentinel, reasoning: '', toolCalls },
  ];
}

/** Null also for a template that refuses a conversation which begins in the middle. */
function afterSentinel(
  model: Omit<Model, 'closing'>,
  messages: readonly Message[],
  until: 'reply' | 'last-message',
): string | null {
  try {
    const text = renderText(model, messages, [], until);
    const at = text.indexOf(sentinel);
    return at < 0 ? null : text.slice(at + sentinel.length);
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

/**
 * The text that the template makes of messages, up to where a reply begins or to the last message's own end. Throws a
 * Refusal when the template has something against the conversation.
 */
export function renderText(
  model: Omit<Model, 'closing'>,
  messages: readonly Message[],
  tools: readonly Tool[],
  until: 'reply' | 'last-message',
): string {
  try {
    return model.template.render({
      ...model.constants,
      messages: messages.map(templateMessage),
      ...(tools.length === 0 ? {} : { tools: tools.map(templateTool) }),
      add_generation_prompt: until === 'reply',
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Refusal('malformed', `the model's chat template refuses these messages: ${reason.slice(0, 300)}`);
  }
}

function templateMessage(message: Message): Record<string, unknown> {
  switch (message.role) {
    case 'system':
    case 'user':
      return { role: message.role, content: message.text };
    case 'tool':
      return {
        role: 'tool',
        content: message.text,
        tool_call_id: message.callId,
        ...(message.name === null ? {} : { name: message.name }),
      };
    case 'assistant':
      return {
        role: 'assistant',
        content: message.text,
        ...(message.reasoning === '' ? {} : { reasoning_content: message.reasoning }),
        ...(message.toolCalls.length === 0
          ? {}
          : {
              tool_calls: message.toolCalls.map((call) => ({
                id: call.id,
                type: 'function',
                function: { name: call.name, arguments: argumentsValue(call.arguments) },
              })),
            }),
      };
  }
}

/** Templates expect an object; what is none, or too deep for them to walk, is printed as it is. */
function argumentsValue(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && nestsWithin(value, limits.nesting) ? value : text;
  } catch {
    return text;
  }
}

function templateTool({ name, description, parameters }: Tool): Record<string, unknown> {
  return {
    type: 'function',
    function: {
      name,
      ...(description === null ? {} : { description }),
      ...(parameters === null ? {} : { parameters }),
    },
  };
}
