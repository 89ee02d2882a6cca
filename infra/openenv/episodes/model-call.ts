import { z } from 'zod';

const text = z.string().nullish();
const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.literal('system'), content: text }),
  z.looseObject({ role: z.literal('user'), content: text }),
  z.looseObject({ role: z.literal('assistant') }),
  z.looseObject({ role: z.literal('tool'), content: text }),
]);
const tool = z.looseObject({
  function: z.looseObject({
    name: z.string(),
    description: text,
    parameters: z.record(z.string(), z.unknown()).nullish(),
  }),
});
const request = z.looseObject({ model: z.string(), messages: z.array(message), tools: z.array(tool).default([]) });

/** A tool that the agent offers to its model. */
export interface OfferedTool {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

/** One model call of an agent, as far as a client of the environment sees it. */
export interface ModelCall {
  /** Equal for a repeated call. */
  readonly key: string;
  readonly epoch: number;
  /** The first message to the model. */
  readonly instruction: string;
  /** The messages since the model's last reply. */
  readonly output: string;
  readonly tools: readonly OfferedTool[];
}

/** A reply of the model that the client of the environment plays. */
export type ModelReply =
  | { readonly tool: string; readonly arguments: Readonly<Record<string, unknown>> }
  | { readonly text: string };

/** Characters of one output that a client receives; the agent shows far less of a command. */
const maxCharacters = 200_000;

/** Reads the body of a chat completion request; null if it is not valid. */
export function readModelCall(body: unknown, { key, epoch }: Pick<ModelCall, 'key' | 'epoch'>): ModelCall | null {
  const parsed = request.safeParse(body);
  if (!parsed.success) return null;
  const { messages, tools } = parsed.data;
  const texts = messages.map((one) => ('content' in one && typeof one.content === 'string' ? one.content : ''));
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return {
    key,
    epoch,
    instruction: texts[messages.findIndex(({ role }) => role === 'user')]?.slice(0, maxCharacters) ?? '',
    output:
      last < 0
        ? ''
        : texts
            .slice(last + 1)
            .join('\n')
            .slice(0, maxCharacters),
    tools: tools.map(({ function: { name, description, parameters } }) => ({
      name,
      description: description ?? '',
      schema: parameters ?? {},
    })),
  };
}

/** Builds the chat completion of a reply. It counts no tokens, because the client, which sampled them, does not report them. */
export function completionOf(model: string, key: string, reply: ModelReply): object {
  const calls =
    'text' in reply
      ? {}
      : {
          tool_calls: [
            {
              id: `call_${key.slice(0, 24)}`,
              type: 'function',
              function: { name: reply.tool, arguments: JSON.stringify(reply.arguments) },
            },
          ],
        };
  return {
    id: `chatcmpl-${key.slice(0, 24)}`,
    object: 'chat.completion',
    model,
    choices: [
      {
        index: 0,
        finish_reason: 'text' in reply ? 'stop' : 'tool_calls',
        message: { role: 'assistant', content: 'text' in reply ? reply.text : null, ...calls },
      },
    ],
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  };
}
