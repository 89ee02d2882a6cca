import type { Model, ReplyEvent, Tool } from '../../../infra/kits/chat-tokens/index.ts';

export interface ReadOptions {
  readonly prompt?: string;
  readonly tools?: readonly Tool[];
  /** The number of ids that the parser gets at once. */
  readonly chunk?: number;
}

export interface Reply {
  /** The events, with adjacent pieces of the same kind joined. */
  readonly events: readonly ReplyEvent[];
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly statuses: readonly string[];
}

export const bash: Tool = {
  name: 'bash',
  description: 'Runs a command.',
  parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
};

/** Reads sampled ids with a model's parser. */
export function readReply(model: Model, ids: readonly number[], options: ReadOptions = {}): Reply {
  const { prompt = '', tools = [bash], chunk = 1 } = options;
  const parser = model.family.createParser({ tokens: model.tokens, tools, promptIds: model.tokens.encode(prompt) });
  const pieces: ReplyEvent[] = [];
  for (let at = 0; at < ids.length; at += chunk) pieces.push(...parser.push(ids.slice(at, at + chunk)));
  pieces.push(...parser.end());
  const events = pieces.reduce(join, []);
  const textOf = (kind: 'text' | 'reasoning'): string =>
    events.map((event) => (event.kind === kind ? event.text : '')).join('');
  return {
    events,
    text: textOf('text'),
    reasoning: textOf('reasoning'),
    calls: events.flatMap((event) =>
      event.kind === 'call' ? [{ name: event.call.name, arguments: event.call.arguments }] : [],
    ),
    statuses: events.flatMap((event) => ('call' in event ? [event.call.status] : [])),
  };
}

function join(events: readonly ReplyEvent[], event: ReplyEvent): ReplyEvent[] {
  const last = events.at(-1);
  if (last?.kind !== event.kind || !('text' in last) || !('text' in event)) return [...events, event];
  return [...events.slice(0, -1), { kind: event.kind, text: last.text + event.text }];
}
