import { z } from 'zod';
import type { Conversation, Image, Tool } from '../../../kits/chat-tokens/index.ts';
import { GatewayError } from '../../gateway-error.ts';
import {
  type Content,
  type ContentPart,
  content,
  contentOf,
  joined,
  partOf,
  type TextParts,
  textOf,
} from '../shared/content.ts';
import {
  checkNesting,
  createItemReader,
  createTranscript,
  items,
  jsonSchema,
  orElse,
  parse,
  quoted,
  type Transcript,
  toolOf,
} from '../shared/reading.ts';
import { samplingFields } from '../shared/sampling-fields.ts';

const message = z.object({ role: z.string(), content });
const tool = z.looseObject({
  type: z.string().nullish(),
  name: orElse(z.string(), ''),
  description: z.string().nullish(),
  input_schema: jsonSchema,
});

/** The fields that temper reads; all others are tolerated. */
const messagesRequest = z.looseObject({
  model: orElse(z.string(), 'policy'),
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
  return { messages: transcript.end(), tools: (tools ?? []).flatMap(readTool) };
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
  let parts: (string | Image)[] = [];
  const endText = (): void => {
    transcript.add({ role: 'user', ...joined(parts, textBlocks) });
    parts = [];
  };
  for (const [index, block] of blocks.entries()) {
    if (block.type !== 'tool_result') {
      parts.push(partOf(block, `${at}.${index}`, textBlocks));
      continue;
    }
    if (parts.length > 0) endText();
    const result = parse(toolResult, block, `${at}.${index}`);
    const read = contentOf(result.content, `${at}.${index}.content`, textBlocks);
    transcript.add({ role: 'tool', callId: result.tool_use_id, name: null, ...read });
  }
  if (parts.length > 0 || blocks.length === 0) endText();
}

const text = z.looseObject({ text: orElse(z.string(), '') });
const thinking = z.looseObject({ thinking: orElse(z.string(), '') });
const toolUse = z.looseObject({
  id: z.string(),
  name: z.string(),
  input: orElse(z.record(z.string(), z.unknown()), {}),
});
/** The summary by which a server has replaced what came before. */
const compaction = z.looseObject({ content: orElse(z.string(), '') });

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
  ['compaction', (transcript, block, at) => transcript.append('text', parse(compaction, block, at).content)],
]);

/**
 * The blocks that are left out: the calls and results of tools that run on Anthropic's servers, and the mark of a model that
 * stood in for another one. This model has made none of them, so they come from an earlier one.
 */
const droppedBlock = /^(?:server_tool_use|mcp_tool_use|fallback|.+_tool_result)$/;

function readAssistant(transcript: Transcript, value: Content, at: string): void {
  transcript.append('text', '');
  for (const [index, block] of blocksOf(value).entries()) {
    if (droppedBlock.test(block.type)) continue;
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
 * means to use it, so an error tells it more than a model that never calls the tool. The tools that search for others are left
 * out: here the model sees each tool from the start, deferred ones too.
 */
function readTool({ type, name, description, input_schema: parameters }: z.output<typeof tool>, index: number): Tool[] {
  const at = `tools.${index}`;
  if (type === undefined || type === null || type === 'custom') {
    if (name === '') throw new GatewayError('malformed', `${at}.name: expected the name of the tool`);
    return [toolOf({ name, description, parameters }, `${at}.input_schema`)];
  }
  if (type.startsWith('tool_search_tool_')) return [];
  throw new GatewayError(
    'unsupported',
    `${at}.type: expected custom (a tool with an input_schema), got ${quoted(type)}; only Anthropic has this tool`,
  );
}
