import {
  type AssistantMessage,
  canonicalArguments,
  canonicalJson,
  type ToolCall,
} from '../../kits/chat-tokens/index.ts';

/** In what a client's echo of a reply differs from the reply. The ledger goes on from what was sampled. */
export type EchoDifference = 'text' | 'reasoning' | 'arguments' | 'call-ids';

/**
 * Whether a message means the reply, given that it stands behind the very request which the reply answered. Text may differ
 * in blanks at the ends of lines and in empty lines, or be left out beside calls. Arguments may differ in form. Where a call
 * has the id that we gave it, members may be added (defaults) or left out, and what was no JSON object may be anything.
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
  const said = membersOf(call.arguments);
  const echoed = membersOf(echo.arguments);
  return said === null || (echoed !== null && [...said].every(([name, value]) => isSameValue(echoed, name, value)));
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
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? new Map(Object.entries(value)) : null;
  } catch {
    return null;
  }
}

/**
 * Without blanks at the ends of lines, empty lines, and what stands around the whole. Line by line, since a pattern that looks
 * for blanks before a line's end takes a time that grows with the square of a run of blanks, and clients write this text.
 */
export function withoutBlanks(text: string): string {
  const lines = text.trim().split('\n');
  return lines.flatMap((line) => line.trimEnd() || []).join('\n');
}

/** What to count of an echo that was taken for the reply. */
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
