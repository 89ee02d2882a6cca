import { type Message, nestsWithin } from '../../kits/chat-tokens/index.ts';

/** Prefixes a text with its length, so that no two sequences of texts feed the same bytes to a hash. */
export const sized = (text: string): string => `${text.length}:${text}`;

/**
 * Returns text that is equal for two messages with the same meaning: call ids and reasoning are ignored (clients invent the
 * former and drop the latter), arguments are compared as parsed JSON, and text without surrounding whitespace.
 */
export function canonicalMessage(message: Message): string {
  const head = sized(message.role) + sized(message.text.trim());
  if (message.role !== 'assistant') return head + imagesOf(message).map(sized).join('');
  const calls = message.toolCalls.map((call) => sized(call.name) + sized(canonicalArguments(call.arguments)));
  return `${head}${calls.length}:${calls.join('')}`;
}

/** The addresses of a message's images. */
export function imagesOf(message: Message): readonly string[] {
  const parts = message.role === 'user' || message.role === 'tool' ? (message.parts ?? []) : [];
  return parts.flatMap((part) => (typeof part === 'string' ? [] : [part.url]));
}

/** Returns text that is equal for two texts of the same JSON value. */
export function canonicalArguments(text: string): string {
  try {
    return canonicalJson(JSON.parse(text)) ?? text.trim();
  } catch {
    return text.trim();
  }
}

/** Serializes a value with sorted keys. Null for a value nested deeper than `maxNesting`. */
export function canonicalJson(value: unknown): string | null {
  return nestsWithin(value) ? JSON.stringify(sorted(value)) : null;
}

/** Recurses at most `maxNesting` levels, which `canonicalJson` has checked. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, sorted(member)]));
}
