import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FinishReason, TokenSampling } from '../../../workflows/contracts/trace.ts';
import type { AssistantMessage, Conversation, Image, Message } from '../../kits/chat-tokens/index.ts';
import type { UpstreamModel } from './upstreams.ts';

/** One model call, independent of the agent's dialect. */
export interface UpstreamCall {
  readonly conversation: Conversation;
  readonly sampling: TokenSampling;
  readonly maxTokens: number;
}

export interface UpstreamReply {
  readonly reply: AssistantMessage;
  readonly finishReason: FinishReason;
  /** The name that the server uses for the model. */
  readonly model: string;
  readonly promptTokens: number;
  readonly sampledTokens: number;
}

/** Builds the body of an OpenAI chat completion. Parameters at their default are left out, since some models accept no others. */
export function requestBody(upstream: UpstreamModel, { conversation, sampling, maxTokens }: UpstreamCall): object {
  const { messages, tools } = conversation;
  const { temperature, topP, topK } = sampling;
  return {
    model: upstream.model,
    messages: wireMessages(messages, upstream),
    ...(tools.length > 0 && { tools: tools.map(wireTool) }),
    [upstream.maxTokensField]: maxTokens,
    ...(temperature !== 1 && { temperature }),
    ...(topP !== 1 && { top_p: topP }),
    ...(topK !== -1 && { top_k: topK }),
  };
}

/**
 * Writes the messages. The API has images in messages of the user only: those of tool results follow in one, after the last of
 * adjacent results.
 */
function wireMessages(messages: readonly Message[], { returnsReasoning, readsImages }: UpstreamModel): object[] {
  return messages.flatMap((message, index) => {
    const wire = wireMessage(message, returnsReasoning);
    if (!readsImages) return [wire];
    if (message.role === 'user' && message.parts !== undefined) {
      return [{ role: 'user', content: message.parts.map(wirePart) }];
    }
    if (message.role !== 'tool' || messages[index + 1]?.role === 'tool') return [wire];
    const first = messages.findLastIndex(({ role }, at) => at < index && role !== 'tool') + 1;
    const shown = messages.slice(first, index + 1).flatMap((result) => imagesOf(result));
    return shown.length === 0 ? [wire] : [wire, { role: 'user', content: shown.map(wirePart) }];
  });
}

function imagesOf(message: Message): (string | Image)[] {
  if (message.role !== 'tool' || message.parts === undefined) return [];
  return [
    `The images of the result of call ${message.callId}:`,
    ...message.parts.filter((part) => typeof part !== 'string'),
  ];
}

const wirePart = (part: string | Image): object =>
  typeof part === 'string' ? { type: 'text', text: part } : { type: 'image_url', image_url: { url: part.url } };

function wireMessage(message: Message, withReasoning: boolean): object {
  const { role, text } = message;
  if (role === 'tool') return { role, tool_call_id: message.callId, content: text };
  if (role !== 'assistant') return { role, content: text };
  const { reasoning, toolCalls } = message;
  return {
    role,
    content: text === '' && toolCalls.length > 0 ? null : text,
    ...(withReasoning && reasoning !== '' && { reasoning_content: reasoning }),
    ...(toolCalls.length > 0 && {
      tool_calls: toolCalls.map(({ id, name, arguments: args }) => ({
        id,
        type: 'function',
        function: { name, arguments: args },
      })),
    }),
  };
}

function wireTool({ name, description, parameters }: Conversation['tools'][number]): object {
  return {
    type: 'function',
    function: { name, ...(description !== null && { description }), ...(parameters !== null && { parameters }) },
  };
}

const toolCall = z.looseObject({
  id: z.string().nullish(),
  function: z.looseObject({ name: z.string(), arguments: z.string().nullish() }),
});
const completion = z.looseObject({
  model: z.string().nullish(),
  choices: z
    .array(
      z.looseObject({
        finish_reason: z.string().nullish(),
        message: z.looseObject({
          content: z.string().nullish(),
          refusal: z.string().nullish(),
          reasoning_content: z.string().nullish(),
          reasoning: z.string().nullish().catch(null),
          tool_calls: z.array(toolCall).nullish(),
        }),
      }),
    )
    .min(1),
  usage: z.looseObject({ prompt_tokens: z.int().min(0), completion_tokens: z.int().min(0) }),
});

/** Reads the body of a 200. Throws EngineInvalid, which names what is missing. A call without an id is named by the turn's `key`. */
export function readReply(upstream: UpstreamModel, body: unknown, key: string): UpstreamReply {
  const parsed = completion.safeParse(body);
  if (!parsed.success) {
    const issues = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'body'}: ${message}`);
    throw new TemperFailure(
      'EngineInvalid',
      `upstream ${upstream.name}: expected a chat completion with its usage: ${issues.join('; ').slice(0, 400)}`,
    );
  }
  const { choices, usage, model } = parsed.data;
  const [choice] = choices;
  const { content, refusal, reasoning_content, reasoning, tool_calls } = choice?.message ?? {};
  return {
    reply: {
      role: 'assistant',
      text: content ?? refusal ?? '',
      reasoning: reasoning_content ?? reasoning ?? '',
      toolCalls: (tool_calls ?? []).map(({ id, function: called }, index) => ({
        id: id || `call_${key.slice(0, 16)}${index}`,
        name: called.name,
        arguments: called.arguments || '{}',
      })),
    },
    finishReason: choice?.finish_reason === 'length' ? 'length' : 'stop',
    model: model || upstream.model,
    promptTokens: usage.prompt_tokens,
    sampledTokens: usage.completion_tokens,
  };
}
