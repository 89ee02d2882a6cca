import type { Piece } from '../pieces.ts';
import { broken, jsonArguments, type Reading, reading } from './call.ts';
import { createDelimitedParser, textOf } from './delimited.ts';
import type { ParserInput, ReplyParser } from './parser.ts';

const openSection = '<|tool_calls_section_begin|>';
const openArguments = '<|tool_call_argument_begin|>';

/**
 * Parses the syntax of Kimi K2: `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`,
 * in a section.
 */
export const createKimiParser = (input: ParserInput): ReplyParser =>
  createDelimitedParser(input, {
    open: '<|tool_call_begin|>',
    close: '<|tool_call_end|>',
    inner: [openArguments],
    around: [openSection, '<|tool_calls_section_end|>'],
    endsReasoning: [openSection],
    read: (body, closed) => (closed ? readCall(body) : broken('unclosed')),
  });

/** The ids of Kimi's calls: the model numbers them over the whole conversation, and matches results by them. */
export const kimiCallIds = {
  isValid: (id: string): boolean => /^functions\.[^:]+:\d+$/.test(id),
  make: (name: string, index: number): string => `functions.${name}:${index}`,
} as const;

function readCall(body: readonly Piece[]): Reading {
  const at = body.findIndex((piece) => 'marker' in piece && piece.marker === openArguments);
  if (at < 0) return broken('malformed');
  const id = textOf(body.slice(0, at)).trim();
  const name = /^(?:functions\.)?(.*?)(?::\d+)?$/.exec(id)?.[1] ?? '';
  return reading(name, jsonArguments(textOf(body.slice(at + 1))), id);
}
