import type { RefusalKind } from '../refusal.ts';
import type { Dialect, FinishedReply, ReplyHead, StreamWriter } from './dialect.ts';
import { type ChatRequest, conversationOf, parseChatRequest } from './openai-chat-request.ts';

/** OpenAI chat completions, as the SDKs of its many clients read them. */
export const openaiChat: Dialect = {
  name: 'openai-chat',
  path: '/v1/chat/completions',
  read(body) {
    const request = parseChatRequest(body);
    return {
      conversation: conversationOf(request),
      delivery: request.stream === true ? 'stream' : 'whole',
      maxTokens: request.max_completion_tokens ?? request.max_tokens ?? null,
      whole: (reply) => ({
        ...headOf(request, reply, 'chat.completion'),
        choices: [{ index: 0, message: messageOf(reply), logprobs: null, finish_reason: finishReasonOf(reply) }],
        usage: usageOf(reply),
      }),
      stream: (head) => createWriter(request, head),
    };
  },
  error: (refusal) => ({ status: refusal.status, body: errorBody(refusal.kind, refusal.message) }),
};

function createWriter(request: ChatRequest, head: ReplyHead): StreamWriter {
  const common = headOf(request, head, 'chat.completion.chunk');
  const withUsage = request.stream_options?.include_usage === true;
  const chunk = (delta: object, finishReason: string | null = null): string =>
    event({
      ...common,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
      ...(withUsage ? { usage: null } : {}),
    });
  return {
    begin: () => chunk({ role: 'assistant', content: '' }),
    delta: ({ kind, text }) => chunk(kind === 'text' ? { content: text } : { reasoning_content: text }),
    finish: (reply) => {
      const calls = reply.reply.toolCalls.map((call, index) => chunk({ tool_calls: [{ index, ...wireCall(call) }] }));
      const usage = withUsage ? event({ ...common, choices: [], usage: usageOf(reply) }) : '';
      return `${calls.join('')}${chunk({}, finishReasonOf(reply))}${usage}data: [DONE]\n\n`;
    },
    fail: (refusal) => event(errorBody(refusal.kind, refusal.message)),
  };
}

const event = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;

function headOf(request: ChatRequest, { key, createdAt }: ReplyHead, object: string) {
  return { id: `chatcmpl-${key}`, object, created: Math.floor(createdAt / 1000), model: request.model };
}

function messageOf({ reply }: FinishedReply) {
  const { text, reasoning, toolCalls } = reply;
  return {
    role: 'assistant',
    content: text === '' && toolCalls.length > 0 ? null : text,
    refusal: null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(wireCall) }),
  };
}

const wireCall = (call: { readonly id: string; readonly name: string; readonly arguments: string }) => ({
  id: call.id,
  type: 'function',
  function: { name: call.name, arguments: call.arguments },
});

function finishReasonOf({ reply, finishReason }: FinishedReply): string {
  if (finishReason === 'length') return 'length';
  return reply.toolCalls.length > 0 ? 'tool_calls' : 'stop';
}

function usageOf({ promptTokens, sampledTokens }: FinishedReply) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: sampledTokens,
    total_tokens: promptTokens + sampledTokens,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}

function errorBody(kind: RefusalKind, message: string) {
  const { type, code } = words[kind];
  return { error: { message, type, param: null, code } };
}

/** What clients look for to tell errors apart, for example to compact their context. */
const words: Record<RefusalKind, { readonly type: string; readonly code: string | null }> = {
  unauthorized: { type: 'authentication_error', code: 'invalid_api_key' },
  'unknown-session': { type: 'permission_error', code: 'unknown_session' },
  'session-closed': { type: 'invalid_request_error', code: 'session_closed' },
  'not-found': { type: 'invalid_request_error', code: 'not_found' },
  'wrong-method': { type: 'invalid_request_error', code: 'method_not_allowed' },
  malformed: { type: 'invalid_request_error', code: null },
  unsupported: { type: 'invalid_request_error', code: 'unsupported_value' },
  'too-large': { type: 'invalid_request_error', code: 'request_too_large' },
  'context-overflow': { type: 'invalid_request_error', code: 'context_length_exceeded' },
  'turn-limit': { type: 'insufficient_quota', code: 'turn_limit' },
  'too-many-turns': { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  'engine-unavailable': { type: 'server_error', code: 'engine_unavailable' },
  'gateway-closing': { type: 'server_error', code: 'gateway_restarting' },
  'journal-unavailable': { type: 'server_error', code: 'gateway_unavailable' },
  internal: { type: 'server_error', code: null },
};
