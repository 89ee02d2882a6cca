import type { AssistantMessage, Message } from '../../kits/chat-tokens/index.ts';

/** Shorter texts occur in others by chance. */
const distinctiveLength = 32;

/** The number of lines compared from a summary's end: agents drop the analysis at its start. */
const comparedLines = 16;

/** Returns the user messages before the model's first reply: the task, and what the agent puts around it. */
export function openingOf(messages: readonly Message[]): string[] {
  const replied = messages.findIndex(({ role }) => role === 'assistant');
  const opening = replied < 0 ? messages : messages.slice(0, replied);
  return opening.flatMap(({ role, text }) => (role === 'user' ? [text.trim()] : []));
}

/** Whether an opening message is a task that a call of the reply delegates, perhaps with an agent's notes before or after it. */
export function isTaskOf(opening: readonly string[], { toolCalls }: AssistantMessage): boolean {
  const tasks = toolCalls.flatMap((call) => textsOf(call.arguments));
  return tasks.some((task) =>
    opening.some((text) => text === task || text.endsWith(`\n${task}`) || text.startsWith(`${task}\n`)),
  );
}

/** Whether the opening contains a text that a call of the reply delegates, and that `known` does not contain. */
export function quotesTaskOf(opening: string, { toolCalls }: AssistantMessage, known: string): boolean {
  const tasks = toolCalls.flatMap((call) => textsOf(call.arguments));
  return tasks.some((task) => isDistinctive(task) && opening.includes(task) && !known.includes(task));
}

/** Whether the opening contains a line of the reply's text that `known` does not contain. */
export function carriesSummaryOf(opening: string, { text, toolCalls }: AssistantMessage, known: string): boolean {
  if (toolCalls.length > 0) return false;
  const lines = text.split('\n').map((line) => line.trim());
  const distinctive = lines.filter(isDistinctive).slice(-comparedLines);
  return distinctive.some((line) => opening.includes(line) && !known.includes(line));
}

const isDistinctive = (text: string): boolean => text.length >= distinctiveLength;

/** The texts among the arguments of a call. */
function textsOf(args: string): string[] {
  try {
    const value: unknown = JSON.parse(args);
    const members = typeof value === 'object' && value !== null ? Object.values(value) : [];
    return members.flatMap((member) => (typeof member === 'string' && member.trim() !== '' ? [member.trim()] : []));
  } catch {
    return [];
  }
}
