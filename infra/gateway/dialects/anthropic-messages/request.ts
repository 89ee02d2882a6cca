import { z } from 'zod';
import type { Conversation, Tool } from '../../../kits/chat-tokens/index.ts';
import { GatewayError } from '../../gateway-error.ts';
import {
  type Content,
  type ContentPart,
  checkNesting,
  content,
  createTranscript,
  jsonSchema,
  parse,
  partText,
  quoted,
  type TextParts,
  type Transcript,
  textOf,
  toolOf,
} from '../shared/reading.ts';
import { samplingFields } from '../shared/sampling-fields.ts';

const message = z.object({ role: z.string(), content });
const tool = z.looseObject({
  type: z.string().nullish(),
  name: z.string().min(1),
  description: z.string().nullish(),
  input_schema: jsonSchema,
});

/** Fields that temper reads; all others are tolerated. */
const messagesRequest = z.looseObject({
  model: z.string().default('policy'),
  system: content,
  messages: z.array(message).min(1),
  tools: z.array(tool).nullish(),
  stream: z.boolean().nullish(),
  max_tokens: z.int().positive().nullish(),
  ...samplingFields,
});
export type MessagesRequest = z.output<typeof messagesRequest>;

export const parseMessagesRequest = (body: unknown): MessagesRequest => parse(messagesRequest, body);

/** In the words of the models that do not go on from a begun reply either. */
export function refusePrefill({ messages }: MessagesRequest): void {
  if (messages.at(-1)?.role !== 'assistant') return;
  throw new GatewayError(
    'unsupported',
    'This model does not support assistant message prefill. The conversation must end with a user message.',
  );
}

export function conversationOf({ system, messages, tools }: MessagesRequest): Conversation {
  const transcript = createTranscript();
  const prompt = textOf(system, 'system', textBlocks);
  if (prompt !== '') transcript.add({ role: 'system', text: prompt });
  for (const [index, { role, content: said }] of messages.entries()) {
    const at = `messages.${index}`;
    if (role === 'user') readUser(transcript, said, `${at}.content`);
    else if (role === 'assistant') readAssistant(transcript, said, `${at}.content`);
    else if (role === 'system') transcript.add({ role, text: textOf(said, `${at}.content`, textBlocks) });
    else throw new GatewayError('unsupported', `${at}.role: expected user, assistant or system, got ${quoted(role)}`);
  }
  return { messages: transcript.end(), tools: (tools ?? []).map(readTool) };
}

/** A string is short for one block of text. */
const blocksOf = (said: Content): readonly ContentPart[] =>
  typeof said === 'string' ? [{ type: 'text', text: said }] : (said ?? []);

const textBlocks: TextParts = { fields: new Map([['text', 'text']]), separator: '\n' };

const toolResult = z.looseObject({ tool_use_id: z.string(), content });

/**
 * Texts that stand together are one message; results of tools are messages of their own. `is_error` doesn't count: chat
 * templates have no place for it, and what clients write into such a result says that it is one.
 */
function readUser(transcript: Transcript, said: Content, at: string): void {
  const blocks = blocksOf(said);
  let texts: string[] = [];
  const endText = (): void => {
    transcript.add({ role: 'user', text: texts.join(textBlocks.separator) });
    texts = [];
  };
  for (const [index, block] of blocks.entries()) {
    if (block.type !== 'tool_result') {
      texts.push(partText(block, `${at}.${index}`, textBlocks));
      continue;
    }
    if (texts.length > 0) endText();
    const result = parse(toolResult, block, `${at}.${index}`);
    const text = textOf(result.content, `${at}.${index}.content`, textBlocks);
    transcript.add({ role: 'tool', callId: result.tool_use_id, name: null, text });
  }
  if (texts.length > 0 || blocks.length === 0) endText();
}

const text = z.looseObject({ text: z.string() });
const thinking = z.looseObject({ thinking: z.string() });
const toolUse = z.looseObject({ id: z.string(), name: z.string(), input: z.record(z.string(), z.unknown()) });

type BlockReader = (transcript: Transcript, block: ContentPart, at: string) => void;

const assistantBlocks: ReadonlyMap<string, BlockReader> = new Map<string, BlockReader>([
  ['text', (transcript, block, at) => transcript.say('text', parse(text, block, at).text)],
  ['thinking', (transcript, block, at) => transcript.say('reasoning', parse(thinking, block, at).thinking)],
  // Of another model: temper hides no reasoning.
  ['redacted_thinking', (transcript) => transcript.say('reasoning', '')],
  [
    'tool_use',
    (transcript, block, at) => {
      const { id, name, input } = parse(toolUse, block, at);
      checkNesting(input, `${at}.input`);
      transcript.call({ id, name, arguments: JSON.stringify(input) });
    },
  ],
]);

function readAssistant(transcript: Transcript, said: Content, at: string): void {
  transcript.say('text', '');
  for (const [index, block] of blocksOf(said).entries()) {
    const read = assistantBlocks.get(block.type);
    if (read === undefined) {
      const types = [...assistantBlocks.keys()].join(', ');
      throw new GatewayError(
        'unsupported',
        `${at}.${index}: expected a block of type ${types}, got ${quoted(block.type)}`,
      );
    }
    read(transcript, block, `${at}.${index}`);
  }
}

/**
 * Tools of Anthropic's own come without a schema, and some run on its servers. A request names one only when it is about
 * it, so a client learns more from an error than from a model that never calls it.
 */
function readTool({ type, name, description, input_schema: parameters }: z.output<typeof tool>, index: number): Tool {
  if (type === undefined || type === null || type === 'custom') {
    return toolOf({ name, description, parameters }, `tools.${index}.input_schema`);
  }
  throw new GatewayError(
    'unsupported',
    `tools.${index}.type: expected custom (a tool with an input_schema), got ${quoted(type)}; only Anthropic has this tool`,
  );
}
