import { z } from 'zod';
import {
  type AssistantMessage,
  type Message,
  maxNesting,
  nestsWithin,
  type Tool,
  type ToolCall,
} from '../../../kits/chat-tokens/index.ts';
import { GatewayError } from '../../gateway-error.ts';

/** A piece of content of any kind. */
export const contentPart = z.looseObject({ type: z.string() });
export type ContentPart = z.output<typeof contentPart>;
export const content = z.union([z.string(), z.null(), z.array(contentPart)]).optional();
export type Content = z.output<typeof content>;

export const jsonSchema = z.record(z.string(), z.unknown()).nullish();

/** Throws a GatewayError `malformed` that names the first thing that is wrong; `at` is the path to the value. */
export function parse<Schema extends z.ZodType>(schema: Schema, value: unknown, at = ''): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = [...(at === '' ? [] : [at]), ...(issue?.path ?? [])].join('.');
  throw new GatewayError('malformed', `${path || 'body'}: ${issue?.message ?? 'not understood'}`);
}

/** What clients sent, short enough for a message. */
export const quoted = (text: string): string => JSON.stringify(text.slice(0, 80));

export interface TextParts {
  /** The types of parts that are text, each with the field that holds it. */
  readonly fields: ReadonlyMap<string, string>;
  readonly separator: string;
}

/** The text of a message's content. Throws a GatewayError for what a model that reads text can't read. */
export function textOf(value: Content, at: string, parts: TextParts): string {
  if (typeof value === 'string') return value;
  return (value ?? []).map((part, index) => partText(part, `${at}.${index}`, parts)).join(parts.separator);
}

export function partText(part: ContentPart, at: string, { fields }: TextParts): string {
  const field = fields.get(part.type);
  const text = field === undefined ? undefined : part[field];
  if (typeof text === 'string') return text;
  const types = [...fields.keys()].join(', ');
  throw new GatewayError(
    'unsupported',
    `${at}: expected a part of type ${types}, got ${quoted(part.type)}; this model reads text only`,
  );
}

/** Throws a GatewayError for a JSON value that is too deep to be walked. */
export function checkNesting(value: unknown, at: string): void {
  if (nestsWithin(value)) return;
  throw new GatewayError('malformed', `${at}: nested more than ${maxNesting} deep`);
}

export interface DescribedTool {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly parameters?: Readonly<Record<string, unknown>> | null | undefined;
}

export function toolOf({ name, description, parameters }: DescribedTool, at: string): Tool {
  checkNesting(parameters, at);
  return { name, description: description ?? null, parameters: parameters ?? null };
}

/** Collects messages. What the assistant says may come in pieces: a reply that was given in pieces is echoed in pieces. */
export interface Transcript {
  add(message: Exclude<Message, AssistantMessage>): void;
  say(kind: 'text' | 'reasoning', text: string): void;
  call(call: ToolCall): void;
  end(): readonly Message[];
}

export function createTranscript(): Transcript {
  const messages: Message[] = [];
  let reply: { text: string; reasoning: string; toolCalls: ToolCall[] } | null = null;

  function begun() {
    reply ??= { text: '', reasoning: '', toolCalls: [] };
    return reply;
  }

  function endReply(): void {
    if (reply !== null) messages.push({ role: 'assistant', ...reply });
    reply = null;
  }

  return {
    add(message) {
      endReply();
      messages.push(message);
    },
    say(kind, text) {
      begun()[kind] += text;
    },
    call(call) {
      begun().toolCalls.push(call);
    },
    end() {
      endReply();
      return messages;
    },
  };
}
