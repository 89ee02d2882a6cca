import { z } from 'zod';
import type { Conversation, Tool } from '../../../kits/chat-tokens/index.ts';
import { GatewayError } from '../../gateway-error.ts';
import {
  type Content,
  type ContentPart,
  checkNesting,
  content,
  createItemReader,
  createTranscript,
  items,
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

/** The fields that temper reads; all others are tolerated. */
const messagesRequest = z.looseObject({
  model: z.string().default('policy'),
  system: content,
  messages: items,
  tools: z.array(tool).nullish(),
  stream: z.boolean().nullish(),
  max_tokens: z.int().positive().nullish(),
  ...samplingFields,
});
const readMessages = createItemReader((item, at) => parse(message, item, at));

export function parseMessagesRequest(body: unknown) {
  const request = parse(messagesRequest, body);
  return { ...request, messages: readMessages(request.messages, 'messages') };
}
export type MessagesRequest = Readonly<ReturnType<typeof parseMessagesRequest>>;

/** Refuses a begun reply, with the message of the models that do not support one either. */
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
  for (const [index, { role, content: value }] of messages.entries()) {
    const at = `messages.${index}`;
    if (role === 'user') readUser(transcript, value, `${at}.content`);
    else if (role === 'assistant') readAssistant(transcript, value, `${at}.content`);
    else if (role === 'system') transcript.add({ role, text: textOf(value, `${at}.content`, textBlocks) });
    else throw new GatewayError('unsupported', `${at}.role: expected user, assistant or system, got ${quoted(role)}`);
  }
  return { messages: transcript.end(), tools: (tools ?? []).map(readTool) };
}

/** Reads a plain string as one block of text. */
const blocksOf = (value: Content): readonly ContentPart[] =>
  typeof value === 'string' ? [{ type: 'text', text: value }] : (value ?? []);

const textBlocks: TextParts = { fields: new Map([['text', 'text']]), separator: '\n' };

const toolResult = z.looseObject({ tool_use_id: z.string(), content });

/**
 * Adds adjacent texts as one message, and each tool result as its own message. `is_error` is ignored: chat templates have no
 * field for it, and the text that clients put into such a result shows that it is an error.
 */
function readUser(transcript: Transcript, value: Content, at: string): void {
  const blocks = blocksOf(value);
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
  ['text', (transcript, block, at) => transcript.append('text', parse(text, block, at).text)],
  ['thinking', (transcript, block, at) => transcript.append('reasoning', parse(thinking, block, at).thinking)],
  // Such a block comes from another model, since temper hides no reasoning.
  ['redacted_thinking', (transcript) => transcript.append('reasoning', '')],
  [
    'tool_use',
    (transcript, block, at) => {
      const { id, name, input } = parse(toolUse, block, at);
      checkNesting(input, `${at}.input`);
      transcript.call({ id, name, arguments: JSON.stringify(input) });
    },
  ],
]);

function readAssistant(transcript: Transcript, value: Content, at: string): void {
  transcript.append('text', '');
  for (const [index, block] of blocksOf(value).entries()) {
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
 * Reads a tool with a schema. Anthropic's own tools have no schema, and some run on its servers. A client that offers one
 * means to use it, so an error tells it more than a model that never calls the tool.
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
