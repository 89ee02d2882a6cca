import type { Model, ParsedCall, ReplyEvent, ReplyParser, Tool, ToolCall } from '../../kits/chat-tokens/index.ts';
import type { Plan } from '../branches/ledger.ts';

/** All that the meaning of sampled ids depends on. */
export interface Listening {
  readonly plan: Plan;
  readonly model: Model;
  readonly tools: readonly Tool[];
}

/** Reads sampled ids, one by one, so that what they say comes in the same pieces however the engine sent them. */
export function createListener({ plan, model, tools }: Listening, onEvent: (event: ReplyEvent) => void) {
  const { tokens, family, stopTokenIds } = model;
  const stops = new Set(stopTokenIds);
  let parser: ReplyParser;
  let said: ReplyEvent[];

  function take(events: readonly ReplyEvent[]): void {
    for (const event of events) {
      said.push(event);
      onEvent(event);
    }
  }
  function hear(ids: readonly number[]): void {
    for (const id of ids) if (!stops.has(id)) take(parser.push([id]));
  }
  function restart(ids: readonly number[]): void {
    parser = family.createParser({ tokens, tools, promptIds: plan.newIds });
    said = [];
    hear(ids);
  }
  restart([]);

  return {
    hear,
    restart,
    finish() {
      take(parser.end());
      const textOf = (kind: 'text' | 'reasoning'): string =>
        said.map((event) => (event.kind === kind ? event.text : '')).join('');
      const calls = said.flatMap((event) => (event.kind === 'call' ? [event.call] : []));
      return {
        text: textOf('text'),
        reasoning: textOf('reasoning'),
        toolCalls: calls.map(
          (call, index): ToolCall => ({
            id: sampledId(calls, index) ?? `call_${plan.key.slice(0, 16)}${index}`,
            name: call.name,
            arguments: call.arguments,
          }),
        ),
        faultyCalls: said.flatMap((event) =>
          'call' in event && event.call.status !== 'ok' ? [event.call.status] : [],
        ),
      };
    },
  };
}

/** A model that names its calls has to find the same names at their results; not if it gave one name to two of them. */
function sampledId(calls: readonly ParsedCall[], index: number): string | null {
  const id = calls[index]?.id ?? null;
  return calls.findIndex((call) => call.id === id) === index ? id : null;
}
