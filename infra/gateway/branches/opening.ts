import type { AssistantMessage, Message } from '../../kits/chat-tokens/index.ts';

/** Shorter texts are found in others by chance. */
const tellingLength = 32;

/** Of a summary, from its end: what an agent leaves away (its analysis) stands before. */
const comparedLines = 16;

/** What people and programs said before the model said anything: the task, and what an agent puts around it. */
export function openingOf(messages: readonly Message[]): string[] {
  const replied = messages.findIndex(({ role }) => role === 'assistant');
  const opening = replied < 0 ? messages : messages.slice(0, replied);
  return opening.flatMap(({ role, text }) => (role === 'user' ? [text.trim()] : []));
}

/** Is an opening message a task that the reply gave away, maybe with an agent's notes before or behind it? */
export function isTaskOf(opening: readonly string[], { toolCalls }: AssistantMessage): boolean {
  const tasks = toolCalls.flatMap((call) => textsOf(call.arguments));
  return tasks.some((task) =>
    opening.some((said) => said === task || said.endsWith(`\n${task}`) || said.startsWith(`${task}\n`)),
  );
}

/** Does the opening hold a text that the reply gave away, where `known` did not have it? */
export function quotesTaskOf(opening: string, { toolCalls }: AssistantMessage, known: string): boolean {
  const tasks = toolCalls.flatMap((call) => textsOf(call.arguments));
  return tasks.some((task) => isTelling(task) && opening.includes(task) && !known.includes(task));
}

/** Does a line of what the reply says come back in the opening, where `known` did not have it? */
export function carriesSummaryOf(opening: string, { text, toolCalls }: AssistantMessage, known: string): boolean {
  if (toolCalls.length > 0) return false;
  const lines = text.split('\n').map((line) => line.trim());
  const telling = lines.filter(isTelling).slice(-comparedLines);
  return telling.some((line) => opening.includes(line) && !known.includes(line));
}

const isTelling = (text: string): boolean => text.length >= tellingLength;

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
