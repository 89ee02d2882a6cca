import { isRecord } from '../../is-record.ts';
import type { AssistantMessage, ToolCall } from '../../kits/chat-tokens/index.ts';
import { canonicalArguments, canonicalJson } from './canonical.ts';

/** A way in which a client's echo of a reply differs from it. The ledger always continues from the sampled tokens. */
export type EchoDifference = 'text' | 'reasoning' | 'arguments' | 'call-ids';

/**
 * Whether a message is an echo of the reply, given that it follows the same request that the reply answered. Text may differ
 * in trailing blanks and in empty lines, or be left out beside calls. Arguments may differ in form. Where a call has the id
 * that the gateway gave it, members may be added (defaults) or left out, and arguments that were not a JSON object may be
 * anything.
 */
export function isEchoOf(echo: AssistantMessage, reply: AssistantMessage): boolean {
  const count = reply.toolCalls.length;
  if (echo.toolCalls.length !== count) return false;
  const sameText = withoutBlanks(echo.text) === withoutBlanks(reply.text) || (count > 0 && echo.text.trim() === '');
  return sameText && reply.toolCalls.every((call, at) => isSameCall(echo.toolCalls[at], call));
}

function isSameCall(echo: ToolCall | undefined, call: ToolCall): boolean {
  if (echo?.name !== call.name) return false;
  if (canonicalArguments(echo.arguments) === canonicalArguments(call.arguments)) return true;
  if (echo.id !== call.id) return false;
  const sampled = membersOf(call.arguments);
  const echoed = membersOf(echo.arguments);
  return (
    sampled === null || (echoed !== null && [...sampled].every(([name, value]) => isSameValue(echoed, name, value)))
  );
}

function isSameValue(echoed: ReadonlyMap<string, unknown>, name: string, value: unknown): boolean {
  if (!echoed.has(name)) return true;
  const other = echoed.get(name);
  if (typeof value === 'string' && typeof other === 'string') return withoutBlanks(value) === withoutBlanks(other);
  return canonicalJson(value) === canonicalJson(other);
}

function membersOf(args: string): ReadonlyMap<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(args);
    return isRecord(value) ? new Map(Object.entries(value)) : null;
  } catch {
    return null;
  }
}

/**
 * Removes trailing blanks, empty lines, and whitespace around the whole text. It works line by line, since a pattern for
 * trailing blanks takes time quadratic in the length of a run of blanks, and clients choose this text.
 */
export function withoutBlanks(text: string): string {
  const lines = text.trim().split('\n');
  return lines.flatMap((line) => line.trimEnd() || []).join('\n');
}

/** Returns the differences of an accepted echo, to be counted. */
export function echoDifferences(echo: AssistantMessage, reply: AssistantMessage): EchoDifference[] {
  const differs = (of: (call: ToolCall) => string): boolean =>
    reply.toolCalls.some((call, at) => of(call) !== of(echo.toolCalls[at] ?? call));
  const differences: EchoDifference[] = [];
  if (echo.text !== reply.text) differences.push('text');
  if (echo.reasoning !== reply.reasoning) differences.push('reasoning');
  if (differs((call) => call.arguments)) differences.push('arguments');
  if (differs(({ id }) => id)) differences.push('call-ids');
  return differences;
}
