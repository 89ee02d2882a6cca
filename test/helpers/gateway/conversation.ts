import type { Plan, TokenLedger } from '../../../infra/gateway/branches/token-ledger.ts';
import type { TurnRecord } from '../../../infra/gateway/branches/turn-record.ts';
import { recordOf } from '../../../infra/gateway/turns/policy-backend.ts';
import type { AssistantMessage, Conversation, Message, Tool, ToolCall } from '../../../infra/kits/chat-tokens/index.ts';

/** Adds the turn that answers a plan, as a session does once the engine has sampled it. */
export function finishTurn(
  ledger: TokenLedger,
  plan: Plan,
  reply: AssistantMessage,
  sampledIds: readonly number[],
): TurnRecord {
  const logprobs = sampledIds.map(() => -1);
  const versions = sampledIds.length === 0 ? [] : [{ version: 1, start: 0, end: sampledIds.length }];
  const sampled = { ids: sampledIds, logprobs, versions, finishReason: 'stop', aborts: 0 } as const;
  const said = { sampled, asked: 500, override: null, reply, faultyCalls: [] };
  const turn = recordOf(plan, said, { startedAt: 0, endedAt: Date.now }, ledger.turns.length);
  ledger.add(turn, plan);
  return turn;
}

export const tools: readonly Tool[] = [{ name: 'bash', description: null, parameters: { type: 'object' } }];

export const user = (text: string): Message => ({ role: 'user', text });
export const system = (text: string): Message => ({ role: 'system', text });
export const result = (callId: string, text: string): Message => ({ role: 'tool', callId, name: null, text });

export function reply(text: string, ...toolCalls: readonly ToolCall[]): AssistantMessage {
  return { role: 'assistant', text, reasoning: '', toolCalls };
}

export function call(id: string, name: string, args: object): ToolCall {
  return { id, name, arguments: JSON.stringify(args) };
}

/** Creates the requests of an agent to a ledger. Each is answered with the given reply, whose ids name the turn. */
export function createConversation(ledger: TokenLedger) {
  return (
    messages: readonly Message[],
    answer: AssistantMessage,
    offered: Conversation['tools'] = tools,
  ): Message[] => {
    const plan = ledger.plan({ messages, tools: offered });
    finishTurn(ledger, plan, answer, [ledger.turns.length % 200, 258]);
    return [...messages, answer];
  };
}
