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

/**
 * Makes a field optional. Clients send null for a field that they leave out, so that both count as absent.
 */
export const optional = <Schema extends z.ZodType>(schema: Schema) =>
  schema.nullish().transform((value) => value ?? undefined);

/** Makes a field optional, with a value that stands for an absent one. */
export const orElse = <Schema extends z.ZodType>(schema: Schema, value: z.output<Schema>) =>
  schema.nullish().transform((given) => given ?? value);

/**
 * The arguments of an echoed call, as text. Clients also send none, null, or the object itself; text that is broken is kept, since
 * it is what the model wrote.
 */
export const callArguments = z
  .unknown()
  .refine((value) => nestsWithin(value), `nested more than ${maxNesting} deep`)
  .transform((value) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value ?? {});
    return ['', 'null'].includes(text.trim()) ? '{}' : text;
  });

export const jsonSchema = z.record(z.string(), z.unknown()).nullish();

/** Parses a value. Throws a GatewayError `malformed` that names the first problem; `at` is the path to the value. */
export function parse<Schema extends z.ZodType>(schema: Schema, value: unknown, at = ''): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = [...(at === '' ? [] : [at]), ...(issue?.path ?? [])].join('.');
  throw new GatewayError('malformed', `${path || 'body'}: ${issue?.message ?? 'not understood'}`);
}

/** A list in a body, with at least one item. The items are read by a `createItemReader`. */
export const items = z.custom<readonly unknown[]>(
  (value) => Array.isArray(value) && value.length > 0,
  'Invalid input: expected a list of at least one item',
);

/**
 * Creates a function that reads the items of a list. Items that an earlier list with the same first item has at the same
 * position are not read again: they are the same objects where a body continues an earlier one.
 */
export function createItemReader<Item>(
  read: (item: unknown, at: string) => Item,
): (list: readonly unknown[], at: string) => readonly Item[] {
  // One entry for each conversation: one for each item would keep the garbage collector busy.
  const known = new WeakMap<object, { readonly list: readonly unknown[]; readonly made: readonly Item[] }>();
  return (list, at) => {
    const [first] = list;
    const isKey = typeof first === 'object' && first !== null;
    const earlier = isKey ? known.get(first) : undefined;
    const made = list.map((item, index) => {
      const same = earlier !== undefined && earlier.list[index] === item ? earlier.made[index] : undefined;
      return same ?? read(item, `${at}.${index}`);
    });
    if (isKey) known.set(first, { list, made });
    return made;
  };
}

/** Quotes a text of a client, short enough for a message. */
export const quoted = (text: string): string => JSON.stringify(text.slice(0, 80));

/** Throws a GatewayError for a JSON value that is nested too deep. */
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

/** Collects messages. Adjacent pieces of an assistant's reply become one message: a reply sent in pieces is echoed in pieces. */
export interface Transcript {
  add(message: Exclude<Message, AssistantMessage>): void;
  append(kind: 'text' | 'reasoning', text: string): void;
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
    append(kind, text) {
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
