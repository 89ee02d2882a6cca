import type { Dialect, FinishedReply, ReplyHead, StreamWriter } from '../dialect.ts';
import { openaiError, openaiModels } from '../shared/openai.ts';
import { samplingOf } from '../shared/sampling-fields.ts';
import { comment, dataEvent } from '../shared/sse.ts';
import { type ChatRequest, conversationOf, parseChatRequest } from './request.ts';

/** OpenAI chat completions, as the SDKs of its many clients read them. */
export const openaiChat: Dialect = {
  name: 'openai-chat',
  path: '/v1/chat/completions',
  listKey: 'messages',
  read(body) {
    const request = parseChatRequest(body);
    return {
      conversation: conversationOf(request),
      delivery: request.stream === true ? 'stream' : 'whole',
      maxTokens: request.max_completion_tokens ?? request.max_tokens ?? null,
      sampling: samplingOf(request),
      whole: (reply) => ({
        ...headOf(request, reply, 'chat.completion'),
        choices: [{ index: 0, message: messageOf(reply), logprobs: null, finish_reason: finishReasonOf(reply) }],
        usage: usageOf(reply),
      }),
      stream: (head) => createWriter(request, head),
    };
  },
  counting: null,
  clientHeader: null,
  models: openaiModels,
  error: openaiError,
};

function createWriter(request: ChatRequest, head: ReplyHead): StreamWriter {
  const common = headOf(request, head, 'chat.completion.chunk');
  const withUsage = request.stream_options?.include_usage === true;
  const chunk = (delta: object, finishReason: string | null = null): string =>
    dataEvent({
      ...common,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
      ...(withUsage ? { usage: null } : {}),
    });
  return {
    begin: () => chunk({ role: 'assistant', content: '' }),
    delta: ({ kind, text }) => chunk(kind === 'text' ? { content: text } : { reasoning_content: text }),
    finish: (reply) => {
      const calls = reply.reply.toolCalls.map((call, index) => chunk({ tool_calls: [{ index, ...wireCall(call) }] }));
      const usage = withUsage ? dataEvent({ ...common, choices: [], usage: usageOf(reply) }) : '';
      return `${calls.join('')}${chunk({}, finishReasonOf(reply))}${usage}data: [DONE]\n\n`;
    },
    keepAlive: () => comment('keep-alive'),
    fail: (error) => dataEvent(openaiError(error).body),
    failsInStream: () => false,
  };
}

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
