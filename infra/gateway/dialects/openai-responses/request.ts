import { z } from 'zod';
import type { Message } from '../../../kits/chat-tokens/index.ts';
import { GatewayError } from '../../gateway-error.ts';
import {
  content,
  createTranscript,
  parse,
  quoted,
  type TextParts,
  type Transcript,
  textOf,
} from '../shared/reading.ts';
import { samplingFields } from '../shared/sampling-fields.ts';
import { argumentsOf, modelNameOf, wireTools } from './tools.ts';

const item = z.looseObject({ type: z.string().nullish() });
type Item = z.output<typeof item>;

/** The fields that temper reads; all others are tolerated. */
const responsesRequest = z.looseObject({
  model: z.string().default('policy'),
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
const call = { call_id: z.string(), name: z.string().min(1), namespace: z.string().nullish() };
const functionCall = z.looseObject({ ...call, arguments: z.string() });
const customCall = z.looseObject({ ...call, input: z.string() });
const output = z.looseObject({ call_id: z.string(), name: z.string().nullish(), output: content });

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
]);

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
  else if (role === 'user') transcript.add({ role, text: textOf(parts, contentAt, texts) });
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
  const { call_id: callId, name, output: parts } = parse(output, entry, at);
  transcript.add({ role: 'tool', callId, name: name ?? null, text: textOf(parts, `${at}.output`, texts) });
}
