import type { Tool } from '../conversation.ts';
import type { CallStatus, ParsedCall, ReplyEvent } from './parser.ts';

export type OfferedTools = ReadonlyMap<string, Tool>;

export const offered = (tools: readonly Tool[]): OfferedTools => new Map(tools.map((tool) => [tool.name, tool]));

/** What a family's syntax says of one call, before anybody asks whether its tool was offered. */
export interface Reading {
  readonly status: Exclude<CallStatus, 'unknown-tool'>;
  readonly id: string | null;
  readonly name: string;
  readonly arguments: string;
}

export const broken = (status: Reading['status']): Reading => ({ status, id: null, name: '', arguments: '' });

/** Reading of a call whose name and arguments have been found. */
export function reading(name: string, args: Arguments, id: string | null = null): Reading {
  if (name === '') return broken('missing-name');
  if (args.status !== 'ok' && args.status !== 'mistyped') return broken(args.status);
  return { status: args.status, id, name, arguments: args.text };
}

export interface Arguments {
  readonly status: Reading['status'];
  /** JSON text of an object; empty unless there is one. */
  readonly text: string;
}

/** Arguments that were sampled as JSON. None at all is what a model says that has nothing to give. */
export function jsonArguments(sampled: string): Arguments {
  const text = sampled.trim();
  if (text === '') return { status: 'ok', text: '{}' };
  const value = parseJson(text);
  if (value === undefined) return { status: 'invalid-json', text: '' };
  return isObject(value) ? { status: 'ok', text } : { status: 'invalid-arguments', text: '' };
}

/** `given`: the agent gets the call; else its text. */
export function settle(
  { status, ...call }: Reading,
  raw: string,
  tools: OfferedTools,
): { readonly given: boolean; readonly event: ReplyEvent } {
  const wellFormed = status === 'ok' || status === 'mistyped';
  const settled: ParsedCall = { ...call, raw, status: wellFormed && !tools.has(call.name) ? 'unknown-tool' : status };
  const given = wellFormed && tools.size > 0;
  return { given, event: { kind: given ? 'call' : 'faulty-call', call: settled } };
}

/** Undefined when the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
