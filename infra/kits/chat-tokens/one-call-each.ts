import type { Message } from './conversation.ts';

/**
 * Splits each reply with several calls into replies with one call, each followed by the results of its call. A template that prints
 * one call at most would refuse such a reply, or leave the other calls out.
 */
export function oneCallEach(messages: readonly Message[]): readonly Message[] {
  const moved = new Set<Message>();
  return messages.flatMap((message, at): readonly Message[] => {
    if (moved.has(message)) return [];
    if (message.role !== 'assistant' || message.toolCalls.length < 2) return [message];
    const results = resultsAfter(messages, at);
    return message.toolCalls.flatMap((call, index) => {
      const own = results.filter((result) => result.callId === call.id && !moved.has(result));
      for (const result of own) moved.add(result);
      return [{ ...message, ...(index > 0 && { text: '', reasoning: '' }), toolCalls: [call] }, ...own];
    });
  });
}

type Result = Extract<Message, { role: 'tool' }>;

function resultsAfter(messages: readonly Message[], at: number): readonly Result[] {
  const others = messages.findIndex(({ role }, index) => index > at && role !== 'tool');
  const after = messages.slice(at + 1, others < 0 ? undefined : others);
  return after.filter((message) => message.role === 'tool');
}
