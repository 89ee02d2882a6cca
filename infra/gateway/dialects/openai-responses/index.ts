import type { Dialect, FinishedReply } from '../dialect.ts';
import { openaiError, openaiModels } from '../shared/openai.ts';
import { partsOf } from '../shared/parts.ts';
import { samplingOf } from '../shared/sampling-fields.ts';
import { itemOf } from './items.ts';
import { finished } from './object.ts';
import { messagesOf, offeredTools, parseResponsesRequest } from './request.ts';
import { createResponsesWriter } from './stream.ts';
import { type ClientTools, readTools } from './tools.ts';

/** OpenAI responses without stored state, as the SDKs and Codex read them. */
export const openaiResponses: Dialect = {
  name: 'openai-responses',
  path: '/v1/responses',
  listKey: 'input',
  read(body) {
    const { request, tools, conversation } = readRequest(body);
    return {
      conversation,
      delivery: request.stream === true ? 'stream' : 'whole',
      maxTokens: request.max_output_tokens ?? null,
      sampling: samplingOf(request),
      whole: (reply) => finished(request, reply, outputOf(reply, tools)),
      stream: (head) => createResponsesWriter(request, tools, head),
    };
  },
  counting: {
    path: '/v1/responses/input_tokens',
    read: (body) => readRequest(body).conversation,
    reply: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
  },
  clientHeader: null,
  models: openaiModels,
  error: openaiError,
};

function readRequest(body: unknown) {
  const request = parseResponsesRequest(body);
  const tools = readTools(offeredTools(request));
  return { request, tools, conversation: { messages: messagesOf(request), tools: tools.tools } };
}

function outputOf(reply: FinishedReply, tools: ClientTools): readonly object[] {
  const isCut = reply.finishReason === 'length';
  const parts = partsOf(reply.reply);
  return parts.map((part, index) => itemOf(part, index, reply, tools).finished(isCut && index === parts.length - 1));
}
