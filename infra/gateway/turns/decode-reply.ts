import type { Model, ParsedCall, ReplyEvent, ReplyParser, Tool, ToolCall } from '../../kits/chat-tokens/index.ts';
import type { Plan } from '../branches/token-ledger.ts';

/** Everything on which the meaning of sampled ids depends. */
export interface DecoderInput {
  readonly plan: Plan;
  readonly model: Model;
  readonly tools: readonly Tool[];
}

/** Decodes sampled ids one by one, so that the events do not depend on how the engine grouped the ids. */
export function createReplyDecoder({ plan, model, tools }: DecoderInput, onEvent: (event: ReplyEvent) => void) {
  const { tokens, family, stopTokenIds } = model;
  const stops = new Set(stopTokenIds);
  let parser: ReplyParser;
  let decoded: ReplyEvent[];

  function take(events: readonly ReplyEvent[]): void {
    for (const event of events) {
      decoded.push(event);
      onEvent(event);
    }
  }
  function push(ids: readonly number[]): void {
    for (const id of ids) if (!stops.has(id)) take(parser.push([id]));
  }
  function restart(ids: readonly number[]): void {
    parser = family.createParser({ tokens, tools, promptIds: plan.newIds });
    decoded = [];
    push(ids);
  }
  restart([]);

  return {
    push,
    /** Discards what was decoded and decodes these ids from the start. */
    restart,
    /** Ends the reply and returns it as a whole. */
    finish() {
      take(parser.end());
      const textOf = (kind: 'text' | 'reasoning'): string =>
        decoded.map((event) => (event.kind === kind ? event.text : '')).join('');
      const calls = decoded.flatMap((event) => (event.kind === 'call' ? [event.call] : []));
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
        faultyCalls: decoded.flatMap((event) =>
          'call' in event && event.call.status !== 'ok' ? [event.call.status] : [],
        ),
      };
    },
  };
}

/** Returns the id that the model gave to a call, for its result; null if it gave none, or the same id to an earlier call. */
function sampledId(calls: readonly ParsedCall[], index: number): string | null {
  const id = calls[index]?.id ?? null;
  return calls.findIndex((call) => call.id === id) === index ? id : null;
}
