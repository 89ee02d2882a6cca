import type { Conversation, Message } from '../../kits/chat-tokens/index.ts';
import { ContextOverflow } from '../gateway-error.ts';
import { limits } from '../limits.ts';

/**
 * Returns the refusal of a conversation that is certainly too long for the context, judged by its characters; null if only its
 * tokens can tell. Rendering and encoding occupy the whole process for as long as the text is long, so that one agent could stop
 * the turns of all others with requests of which no turn can come.
 */
export async function oversizeOf(
  conversation: Conversation,
  contextLength: () => Promise<number | null>,
): Promise<ContextOverflow | null> {
  const characters = charactersOf(conversation);
  if (characters < limits.quickCharacters) return null;
  const length = await contextLength();
  const fewestTokens = Math.ceil(characters / limits.charactersPerToken);
  return length === null || fewestTokens <= length ? null : new ContextOverflow(fewestTokens, length);
}

/** Counts the characters that any template prints. */
function charactersOf({ messages }: Conversation): number {
  return messages.reduce((sum, message) => sum + charactersOfMessage(message), 0);
}

function charactersOfMessage(message: Message): number {
  if (message.role !== 'assistant') return message.text.length;
  // Many templates leave out earlier reasoning, also where it is part of the text.
  const { length } = message.text.slice(message.text.lastIndexOf('</think>') + 1);
  return message.toolCalls.reduce((sum, call) => sum + call.arguments.length, length);
}
