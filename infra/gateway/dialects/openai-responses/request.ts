import { z } from 'zod';
import type { Message } from '../../../kits/chat-tokens/index.ts';
import { GatewayError } from '../../gateway-error.ts';
import { content, contentOf, type TextParts, textOf } from '../shared/content.ts';
import { callArguments, createTranscript, orElse, parse, quoted, type Transcript } from '../shared/reading.ts';
import { samplingFields } from '../shared/sampling-fields.ts';
import { argumentsOf, modelNameOf, namesOf, searchName, type WireTools, wireTools } from './tools.ts';

const item = z.looseObject({ type: z.string().nullish() });
type Item = z.output<typeof item>;

/** The fields that temper reads; all others are tolerated. */
const responsesRequest = z.looseObject({
  model: orElse(z.string(), 'policy'),
  instructions: z.string().nullish(),
  input: z.union([z.string(), z.array(item)]),
  tools: wireTools,
  stream: z.boolean().nullish(),
  background: z.boolean().nullish(),
  max_output_tokens: z.int().positive().nullish(),
  ...samplingFields,
  previous_response_id: z.string().nullish(),
  conversation: z.unknown().optional(),
  prompt: z.unknown().optional(),
});
export type ResponsesRequest = z.output<typeof responsesRequest>;

export function parseResponsesRequest(body: unknown): ResponsesRequest {
  const request = parse(responsesRequest, body);
  for (const field of ['previous_response_id', 'conversation', 'prompt'] as const) {
    if ((request[field] ?? null) !== null) throw nothingStored(field);
  }
  if (request.background === true) {
    throw new GatewayError('unsupported', 'background: expected false, got true; wait for the reply or stream it');
  }
  return request;
}

function nothingStored(at: string): GatewayError {
  return new GatewayError('unsupported', `${at}: nothing is stored here; send the whole conversation as input`);
}

export function messagesOf({ instructions, input }: ResponsesRequest): readonly Message[] {
  const transcript = createTranscript();
  if (instructions) transcript.add({ role: 'system', text: instructions });
  if (typeof input === 'string') transcript.add({ role: 'user', text: input });
  else for (const [index, entry] of input.entries()) readItem(transcript, entry, `input.${index}`);
  return transcript.end();
}

function readItem(transcript: Transcript, entry: Item, at: string): void {
  // The short forms of a message and of a reference both have no type; only the message has a role.
  const type = entry.type ?? (entry.role === undefined && entry.id !== undefined ? 'item_reference' : 'message');
  if (type === 'item_reference') throw nothingStored(at);
  if (droppedItem.test(type)) return;
  const read = itemReaders.get(type);
  if (read === undefined) {
    const types = [...itemReaders.keys()].join(', ');
    throw new GatewayError('unsupported', `${at}.type: expected ${types}, got ${quoted(type)}`);
  }
  read(transcript, entry, at);
}

type ItemReader = (transcript: Transcript, entry: Item, at: string) => void;

const message = z.looseObject({ role: z.string(), content });
const reasoning = z.looseObject({ content, summary: content });
const callId = orElse(z.string(), '');
const call = { call_id: callId, name: z.string().min(1), namespace: z.string().nullish() };
const functionCall = z.looseObject({ ...call, arguments: callArguments });
const customCall = z.looseObject({ ...call, input: orElse(z.string(), '') });
const output = z.looseObject({ call_id: callId, name: z.string().nullish(), output: content });
const searchCall = z.looseObject({ call_id: callId, arguments: callArguments });
const searchOutput = z.looseObject({ call_id: callId, tools: wireTools });
const shellCall = z.looseObject({ call_id: callId, action: callArguments });
const agentMessage = z.looseObject({ author: z.string().nullish(), content });

/**
 * The items that are left out: the calls of tools that only OpenAI's servers run, with what came of them, and notes of the
 * client to itself. This model has made none of them, so they come from an earlier one.
 */
const droppedItem =
  /^(?:(?:web_search|file_search|image_generation|code_interpreter|mcp)_call|mcp_(?:list_tools|approval_.+)|ghost_snapshot)$/;
/** A list of tools that a client adds to those of its request. */
const toolItem = /^(?:additional_tools|tool_search_(?:call_)?output)$/;

const itemReaders: ReadonlyMap<string, ItemReader> = new Map<string, ItemReader>([
  ['message', readMessage],
  [
    'reasoning',
    (transcript, entry, at) => {
      const { content: thinking, summary } = parse(reasoning, entry, at);
      transcript.append(
        'reasoning',
        textOf(thinking, `${at}.content`, thoughts) || textOf(summary, `${at}.summary`, thoughts),
      );
    },
  ],
  [
    'function_call',
    (transcript, entry, at) => {
      const { call_id: id, namespace, name, arguments: text } = parse(functionCall, entry, at);
      transcript.call({ id, name: modelNameOf({ namespace: namespace ?? null, name }), arguments: text });
    },
  ],
  [
    'custom_tool_call',
    (transcript, entry, at) => {
      const { call_id: id, namespace, name, input } = parse(customCall, entry, at);
      transcript.call({ id, name: modelNameOf({ namespace: namespace ?? null, name }), arguments: argumentsOf(input) });
    },
  ],
  ['function_call_output', readOutput],
  ['custom_tool_call_output', readOutput],
  ['local_shell_call_output', readOutput],
  [
    'local_shell_call',
    (transcript, entry, at) => {
      const { call_id: id, action } = parse(shellCall, entry, at);
      transcript.call({ id, name: 'local_shell', arguments: action });
    },
  ],
  [
    'tool_search_call',
    (transcript, entry, at) => {
      const { call_id: id, arguments: text } = parse(searchCall, entry, at);
      transcript.call({ id, name: searchName, arguments: text });
    },
  ],
  ['tool_search_output', readSearchOutput],
  ['tool_search_call_output', readSearchOutput],
  // The tools of such an item are offered with those of the request.
  ['additional_tools', () => {}],
  ['compaction', readCompaction],
  ['compaction_summary', readCompaction],
  ['context_compaction', readCompaction],
  [
    'agent_message',
    (transcript, entry, at) => {
      const { author, content: parts } = parse(agentMessage, entry, at);
      const { text } = contentOf(parts, `${at}.content`, texts);
      transcript.add({ role: 'user', text: author ? `Message of ${author}:\n${text}` : text });
    },
  ],
]);

/** Returns the tools that the request offers, and those that its items add. */
export function offeredTools({ tools, input }: ResponsesRequest): WireTools {
  if (typeof input === 'string') return tools;
  const added = input.flatMap((entry, index) =>
    toolItem.test(entry.type ?? '') ? (parse(searchOutput, entry, `input.${index}`).tools ?? []) : [],
  );
  return [...(tools ?? []), ...added];
}

const textFields: TextParts['fields'] = new Map([
  ['input_text', 'text'],
  ['output_text', 'text'],
  ['text', 'text'],
  ['refusal', 'refusal'],
]);
const texts: TextParts = { fields: textFields, separator: '\n' };
const replyTexts: TextParts = { fields: textFields, separator: '' };
const thoughts: TextParts = {
  fields: new Map([
    ['reasoning_text', 'text'],
    ['summary_text', 'text'],
    ['text', 'text'],
  ]),
  separator: '\n\n',
};

function readMessage(transcript: Transcript, entry: Item, at: string): void {
  const { role, content: parts } = parse(message, entry, at);
  const contentAt = `${at}.content`;
  if (role === 'assistant') transcript.append('text', textOf(parts, contentAt, replyTexts));
  else if (role === 'user') transcript.add({ role, ...contentOf(parts, contentAt, texts) });
  else if (role === 'system' || role === 'developer') {
    transcript.add({ role: 'system', text: textOf(parts, contentAt, texts) });
  } else {
    throw new GatewayError(
      'unsupported',
      `${at}.role: expected system, developer, user or assistant, got ${quoted(role)}`,
    );
  }
}

function readOutput(transcript: Transcript, entry: Item, at: string): void {
  const { call_id: id, name, output: parts } = parse(output, entry, at);
  transcript.add({ role: 'tool', callId: id, name: name ?? null, ...contentOf(parts, `${at}.output`, texts) });
}

/** Reads the tools that a search has found. The model sees their names here, and their schemas among its tools. */
function readSearchOutput(transcript: Transcript, entry: Item, at: string): void {
  const { call_id: id, tools } = parse(searchOutput, entry, at);
  const names = [...new Set(namesOf(tools))];
  const text = names.length === 0 ? 'No tools found.' : `Found tools: ${names.join(', ')}`;
  transcript.add({ role: 'tool', callId: id, name: searchName, text });
}

/** Puts a note where another service has compacted the conversation, since only that service can read what it kept. */
function readCompaction(transcript: Transcript): void {
  transcript.add({
    role: 'user',
    text: '[earlier conversation: compacted by another service, not shown to this model]',
  });
}
