import { limits } from '../../gateway/limits.ts';
import type { Message } from './conversation.ts';

/** Lengths go first, so that no two sequences of texts feed the hash alike. */
export const sized = (text: string): string => `${text.length}:${text}`;

/**
 * Equal for two messages that mean the same one: call ids and reasoning don't count (clients make up the former and drop the
 * latter), arguments count as parsed JSON, text without the whitespace around it.
 */
export function canonicalMessage(message: Message): string {
  const said = sized(message.role) + sized(message.text.trim());
  if (message.role !== 'assistant') return said;
  const calls = message.toolCalls.map((call) => sized(call.name) + sized(canonicalArguments(call.arguments)));
  return `${said}${calls.length}:${calls.join('')}`;
}

/** Equal for two texts of the same JSON value. */
export function canonicalArguments(text: string): string {
  try {
    return canonicalJson(JSON.parse(text)) ?? text.trim();
  } catch {
    return text.trim();
  }
}

/** Null for a value that is too deep to be walked. */
export function canonicalJson(value: unknown): string | null {
  return nestsWithin(value, limits.nesting) ? JSON.stringify(sorted(value)) : null;
}

/** Never deeper than `limits.nesting`. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, sorted(member)]));
}

/** Whether a JSON value is at most `depth` arrays and objects deep; walks without recursion. */
export function nestsWithin(value: unknown, depth: number): boolean {
  let level: unknown[] = [value];
  for (let remaining = depth; level.length > 0; remaining -= 1) {
    const next = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
    if (remaining < 0) return false;
    level = next;
  }
  return true;
}
