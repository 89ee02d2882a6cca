import { invalidArguments, type ToolCall } from '../../../kits/chat-tokens/index.ts';
import { ContextOverflow, type GatewayError, type GatewayErrorKind } from '../../gateway-error.ts';
import type { Dialect, FinishedReply, ReplyHead, StreamWriter } from '../dialect.ts';
import { jsonObject } from '../shared/json-object.ts';
import { createPartStream, type PartFormat, partsOf, type ReplyPart } from '../shared/parts.ts';
import { samplingOf } from '../shared/sampling-fields.ts';
import { typedEvent } from '../shared/sse.ts';
import { conversationOf, type MessagesRequest, parseMessagesRequest, refusePrefill } from './request.ts';

/** Anthropic messages, as its SDKs and Claude Code read them. */
export const anthropicMessages: Dialect = {
  name: 'anthropic-messages',
  path: '/v1/messages',
  listKey: 'messages',
  read(body) {
    const request = parseMessagesRequest(body);
    refusePrefill(request);
    return {
      conversation: conversationOf(request),
      delivery: request.stream === true ? 'stream' : 'whole',
      maxTokens: request.max_tokens ?? null,
      sampling: samplingOf(request),
      whole: (reply) => ({
        ...messageOf(request, reply),
        content: partsOf(reply.reply).map((part) => blockOf(part, reply)),
        stop_reason: stopReasonOf(reply),
        usage: usageOf(reply, reply.sampledTokens),
      }),
      stream: (head) => createWriter(request, head),
    };
  },
  counting: {
    path: '/v1/messages/count_tokens',
    read: (body) => conversationOf(parseMessagesRequest(body)),
    reply: (tokens) => ({ input_tokens: tokens }),
  },
  clientHeader: 'anthropic-version',
  models: {
    all: (name) => ({ data: [modelOf(name)], has_more: false, first_id: name, last_id: name }),
    one: modelOf,
  },
  error: (error) => ({ status: error.status, body: errorBodyOf(error) }),
};

function createWriter(request: MessagesRequest, head: ReplyHead): StreamWriter {
  const parts = createPartStream(formatOf(head));
  return {
    begin: () => typedEvent({ type: 'message_start', message: messageOf(request, head) }),
    delta: (delta) => parts.delta(delta),
    keepAlive: () => typedEvent({ type: 'ping' }),
    finish: (reply) =>
      parts.finish(reply.reply) +
      typedEvent({
        type: 'message_delta',
        delta: { stop_reason: stopReasonOf(reply), stop_sequence: null },
        usage: usageOf(reply, reply.sampledTokens),
      }) +
      typedEvent({ type: 'message_stop' }),
    fail: (error) => typedEvent(errorBodyOf(error)),
    failsInStream: () => false,
  };
}

function formatOf(head: ReplyHead): PartFormat {
  const change = (index: number, delta: object): string => typedEvent({ type: 'content_block_delta', index, delta });
  return {
    open: (part, index) => typedEvent({ type: 'content_block_start', index, content_block: emptyBlock(part) }),
    grow: (part, index, text) => change(index, growth(part, text)),
    close: (part, index) => {
      const signature =
        part.kind === 'reasoning' ? change(index, { type: 'signature_delta', signature: signatureOf(head) }) : '';
      return signature + typedEvent({ type: 'content_block_stop', index });
    },
  };
}

function blockOf(part: ReplyPart, head: ReplyHead) {
  switch (part.kind) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'reasoning':
      return { type: 'thinking', thinking: part.text, signature: signatureOf(head) };
    case 'call':
      return { type: 'tool_use', id: part.call.id, name: part.call.name, input: inputOf(part.call) };
  }
}

function emptyBlock(part: ReplyPart) {
  switch (part.kind) {
    case 'text':
      return { type: 'text', text: '' };
    case 'reasoning':
      return { type: 'thinking', thinking: '', signature: '' };
    case 'call':
      return { type: 'tool_use', id: part.call.id, name: part.call.name, input: {} };
  }
}

function growth(part: ReplyPart, text: string) {
  switch (part.kind) {
    case 'text':
      return { type: 'text_delta', text };
    case 'reasoning':
      return { type: 'thinking_delta', thinking: text };
    case 'call':
      return { type: 'input_json_delta', partial_json: inputText(part.call) };
  }
}

/** Returns the arguments of a call as an object, as the API does: its documentation defines a key for arguments that are not one. */
const inputOf = ({ arguments: text }: ToolCall) => jsonObject(text) ?? { [invalidArguments]: text };

/** The input's text as it was sampled, so that its numbers keep their digits. */
const inputText = (call: ToolCall): string =>
  jsonObject(call.arguments) === null ? JSON.stringify(inputOf(call)) : call.arguments;

/** Returns a signature that proves nothing: clients send back only signed thinking blocks. */
const signatureOf = ({ key }: ReplyHead): string => Buffer.from(key).toString('base64');

function messageOf(request: MessagesRequest, head: ReplyHead) {
  return {
    id: `msg_${head.key}`,
    type: 'message',
    role: 'assistant',
    model: request.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: usageOf(head, 0),
  };
}

function stopReasonOf({ reply, finishReason }: FinishedReply): string {
  if (finishReason === 'length') return 'max_tokens';
  return reply.toolCalls.length > 0 ? 'tool_use' : 'end_turn';
}

function usageOf({ promptTokens }: ReplyHead, sampledTokens: number) {
  return {
    input_tokens: promptTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: sampledTokens,
  };
}

function modelOf(name: string) {
  return { type: 'model', id: name, display_name: name, created_at: '1970-01-01T00:00:00Z' };
}

/** Claude Code starts to compact when it reads exactly this text about a prompt that is too long. */
function errorBodyOf(error: GatewayError) {
  const message =
    error instanceof ContextOverflow
      ? `prompt is too long: ${error.promptTokens} tokens > ${error.contextLength} maximum`
      : error.message;
  return { type: 'error', error: { type: errorTypes[error.kind], message } };
}

/** The error types. In a stream, clients decide by the type alone whether to retry: they retry `overloaded_error`. */
const errorTypes: Record<GatewayErrorKind, string> = {
  unauthorized: 'authentication_error',
  'unknown-session': 'authentication_error',
  'session-closed': 'invalid_request_error',
  submitted: 'invalid_request_error',
  'not-found': 'not_found_error',
  'wrong-method': 'invalid_request_error',
  malformed: 'invalid_request_error',
  unsupported: 'invalid_request_error',
  'too-large': 'request_too_large',
  'context-overflow': 'invalid_request_error',
  'turn-limit': 'permission_error',
  'token-budget': 'permission_error',
  'too-many-turns': 'rate_limit_error',
  'engine-unavailable': 'overloaded_error',
  'engine-invalid': 'api_error',
  'gateway-closing': 'overloaded_error',
  'journal-unavailable': 'overloaded_error',
  internal: 'api_error',
};
