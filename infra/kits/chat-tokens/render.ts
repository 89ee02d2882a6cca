import type { AssistantMessage, Conversation, Message, Tool } from './conversation.ts';
import { TemplateRejection } from './errors.ts';
import type { Family } from './families.ts';
import type { Model, Takes } from './model.ts';
import { nestsWithin } from './nesting.ts';
import { oneCallEach } from './one-call-each.ts';
import { placeSystem } from './system-messages.ts';

/** The parts of a model that rendering its template needs. */
export type Renderer = Pick<
  Model,
  'template' | 'constants' | 'family' | 'argumentsForm' | 'takes' | 'severalCalls' | 'systemForm'
>;

/** The prompt of a conversation, from its first token to where the model's reply begins. Throws TemplateRejection. */
export function renderFull(model: Model, conversation: Conversation): number[] {
  return model.tokens.encode(renderText(model, conversation.messages, conversation.tools, 'reply'));
}

/**
 * Renders messages with the model's template, up to where a reply begins or to the end of the last message. Throws
 * TemplateRejection when the template refuses the conversation.
 */
export function renderText(
  renderer: Renderer,
  messages: readonly Message[],
  tools: readonly Tool[],
  until: 'reply' | 'last-message',
): string {
  const printed = renderer.severalCalls ? messages : oneCallEach(messages);
  try {
    return renderer.template.render({
      ...renderer.constants,
      messages: withCallIds(placeSystem(printed, renderer.systemForm), renderer.family).map((message) =>
        templateMessage(message, renderer),
      ),
      ...(tools.length === 0 ? {} : { tools: tools.map((tool) => templateTool(tool, renderer.takes)) }),
      add_generation_prompt: until === 'reply',
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new TemplateRejection(`the model's chat template refuses these messages: ${reason.slice(0, 300)}`);
  }
}

/**
 * Replaces the ids of calls.
 *
 * Clients may give a call an id of their own. For a family that numbers its calls such ids are replaced, both in the call and
 * in its result.
 */
function withCallIds(messages: readonly Message[], { callIds }: Family): readonly Message[] {
  if (callIds === null) return messages;
  const replaced = new Map<string, string>();
  let index = 0;
  return messages.map((message) => {
    if (message.role === 'tool') return { ...message, callId: replaced.get(message.callId) ?? message.callId };
    if (message.role !== 'assistant') return message;
    const toolCalls = message.toolCalls.map((call) => {
      const id = callIds.isValid(call.id) ? call.id : callIds.make(call.name, index);
      index += 1;
      replaced.set(call.id, id);
      return { ...call, id };
    });
    return { ...message, toolCalls };
  });
}

function templateMessage(message: Message, renderer: Renderer): Record<string, unknown> {
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
      return { role: 'assistant', ...renderer.family.replyFields(message), ...templateCalls(message, renderer) };
  }
}

function templateCalls({ toolCalls }: AssistantMessage, renderer: Renderer): Record<string, unknown> {
  if (toolCalls.length === 0) return {};
  return {
    tool_calls: toolCalls.map(({ id, name, arguments: given }) => ({
      id,
      type: 'function',
      function: { name, arguments: templateArguments(given, renderer) },
    })),
  };
}

/** The member under which arguments stand that are no JSON object, where a template or an API takes an object only. */
export const invalidArguments = 'INVALID_JSON';

/**
 * Returns a call's arguments for the template. No text and `null` mean no arguments. Most templates expect an object; other
 * values, and those too deep to walk, are printed as they are, or as the only member of an object.
 */
function templateArguments(text: string, { argumentsForm, takes }: Renderer): unknown {
  const given = ['', 'null'].includes(text.trim()) ? '{}' : text;
  if (argumentsForm === 'text') return given;
  const value = objectOf(given);
  if (value === null) return takes.anyArguments ? given : { [invalidArguments]: given };
  return takes.nullArguments ? value : mapMembers(value, (member) => member ?? pythonNull);
}

/** Null as Python prints it. The filters of templates, which are written for Python, fail here at null. */
const pythonNull = 'None';

const mapMembers = (value: object, map: (member: unknown) => unknown): object =>
  Object.fromEntries(Object.entries(value).map(([key, member]) => [key, map(member)]));

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => (item === null ? item : withoutNulls(item)));
  if (typeof value === 'object' && value !== null) return mapMembers(value, withoutNulls);
  return value ?? pythonNull;
}

function objectOf(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject && nestsWithin(value) ? value : null;
  } catch {
    return null;
  }
}

function templateTool({ name, description, parameters }: Tool, takes: Takes): Record<string, unknown> {
  const shown = description ?? (takes.toolsWithoutDescription ? undefined : '');
  return {
    type: 'function',
    function: {
      name,
      ...(shown === undefined ? {} : { description: shown }),
      ...(parameters === null ? {} : { parameters: takes.nullInTools ? parameters : withoutNulls(parameters) }),
    },
  };
}
