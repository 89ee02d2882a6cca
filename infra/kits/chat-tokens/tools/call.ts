import type { Tool } from '../conversation.ts';
import type { CallStatus, ParsedCall, ReplyEvent } from './parser.ts';

/** The tools that a request offers, by name. */
export type OfferedTools = ReadonlyMap<string, Tool>;

export const offered = (tools: readonly Tool[]): OfferedTools => new Map(tools.map((tool) => [tool.name, tool]));

/** A call as a family's syntax reads it, before it is checked whether its tool was offered. */
export interface Reading {
  readonly status: Exclude<CallStatus, 'unknown-tool'>;
  readonly id: string | null;
  readonly name: string;
  readonly arguments: string;
}

/** A call that could not be read. */
export const broken = (status: Reading['status']): Reading => ({ status, id: null, name: '', arguments: '' });

/** The reading of a call whose name and arguments have been found. */
export function reading(name: string, args: Arguments, id: string | null = null): Reading {
  if (name === '') return broken('missing-name');
  if (!isWellFormed(args)) return broken(args.status);
  return { status: args.status, id, name, arguments: args.text };
}

/** Whether the agent gets a call with this status, if any tool was offered. */
export const isWellFormed = ({ status }: { readonly status: CallStatus }): boolean =>
  status === 'ok' || status === 'mistyped' || status === 'repaired';

/** Marks a well-formed reading as repaired. */
export const repaired = (found: Reading): Reading => (found.status === 'ok' ? { ...found, status: 'repaired' } : found);

export interface Arguments {
  readonly status: Reading['status'];
  /** The JSON text of an object; empty where the arguments are invalid. */
  readonly text: string;
}

/** Reads arguments that were sampled as JSON. A model with no arguments to pass may write nothing at all. */
export function jsonArguments(sampled: string): Arguments {
  const text = sampled.trim();
  if (text === '') return { status: 'ok', text: '{}' };
  const value = parseJson(text);
  if (value === undefined) return { status: 'invalid-json', text: '' };
  return isObject(value) ? { status: 'ok', text } : { status: 'invalid-arguments', text: '' };
}

/** Decides whether the agent gets the call (`given`) or the text of the call. */
export function settle(
  found: Reading,
  raw: string,
  tools: OfferedTools,
): { readonly given: boolean; readonly event: ReplyEvent } {
  const wellFormed = isWellFormed(found);
  const settled: ParsedCall = {
    ...found,
    raw,
    ...(wellFormed && !tools.has(found.name) && { status: 'unknown-tool' }),
  };
  const given = wellFormed && tools.size > 0;
  return { given, event: { kind: given ? 'call' : 'faulty-call', call: settled } };
}

/** Parses JSON. Undefined when the text is not valid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
