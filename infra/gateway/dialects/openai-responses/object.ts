import type { GatewayError } from '../../gateway-error.ts';
import type { FinishedReply, ReplyHead } from '../dialect.ts';
import { openaiErrorTypes } from '../shared/openai.ts';
import type { ResponsesRequest } from './request.ts';

/** The response while it is being sampled. */
export const inProgress = (request: ResponsesRequest, head: ReplyHead) => responseOf(request, head, 'in_progress');

export function finished(request: ResponsesRequest, reply: FinishedReply, output: readonly object[]) {
  const isCut = reply.finishReason === 'length';
  return {
    ...responseOf(request, reply, isCut ? 'incomplete' : 'completed'),
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    output,
    usage: usageOf(reply),
  };
}

export function failed(request: ResponsesRequest, head: ReplyHead, error: GatewayError, output: readonly object[]) {
  const { type, code } = openaiErrorTypes[error.kind];
  return {
    ...responseOf(request, head, 'failed'),
    error: { code: code ?? type, message: error.message },
    output,
  };
}

/**
 * Returns the response object. The client's own fields are not repeated: they would add tens of kilobytes to three events,
 * and no client reads them there.
 */
function responseOf({ model }: ResponsesRequest, { key, createdAt }: ReplyHead, status: string) {
  return {
    id: `resp_${key}`,
    object: 'response',
    created_at: Math.floor(createdAt / 1000),
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    model,
    output: [],
    parallel_tool_calls: true,
    previous_response_id: null,
    store: false,
    temperature: null,
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    usage: null,
  };
}

function usageOf({ promptTokens, sampledTokens }: FinishedReply) {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: sampledTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + sampledTokens,
  };
}
