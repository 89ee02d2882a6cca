import { reminder, systemPrompt } from '../../../agents/mini/prompt.ts';
import { tools } from '../../../agents/mini/tools.ts';
import { bugAt, files, names, operators, parameterPairs, sourceOf } from '../bug.ts';

/**
 * The vocabulary of the embedded policy: every byte, so that any text has ids and comes back exactly, and as whole tokens
 * the pieces of what it reads and writes in generated tasks.
 */

/** Delimiters of the conversation; decoding leaves them out. */
export const specialTokens = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'] as const;
/** Delimiters of the Hermes syntax: text, but one token each. */
export const markers = ['<tool_call>', '</tool_call>', '<tool_response>', '</tool_response>'] as const;

/** What stands between the values of a tool call. */
const glue = ['\n{"name": "', '", "arguments": {"', '", "arguments": {}}\n', '": "', '", "', '"}}\n'] as const;

const escaped = (text: string): string => text.replaceAll(/[{}|*+?.()[\]\\^$]/g, '\\$&').replaceAll('\n', '\\n');

/** How text is cut into pieces before they are looked up; valid in Oniguruma and in JavaScript. */
export const piecePattern = [
  ...glue.toSorted((a, b) => b.length - a.length).map(escaped),
  ' ?[A-Za-z_]+',
  '\\.[a-z]+',
  ' ?(?:\\*\\*|[-+*/%])=?',
  ' ?=>',
  '\\n *',
  '[0-9]',
  ' ?[^\\sA-Za-z0-9]',
  '\\s',
].join('|');

/** All text of generated tasks and of mini, once; the pieces of it become tokens. */
function sampleTexts(): readonly string[] {
  const symbols = operators.map(({ symbol }) => symbol);
  const bugs = Array.from({ length: 200 }, (_, index) => bugAt('train', 0, index));
  const words = [...files, ...names, ...parameterPairs.flat(), ...operators.map(({ word }) => word), 'index'];
  return [
    systemPrompt,
    reminder,
    'Tools: , ',
    'system',
    'user',
    'assistant',
    'edited',
    'error: ',
    ...tools.flatMap(({ name, parameters }) => [name, ` ${name}`, ...Object.keys(parameters)]),
    ...glue,
    ...words.flatMap((word) => [word, ` ${word}`]),
    ...symbols.flatMap((symbol) => [symbol, ` ${symbol}`, `${symbol}=`, ` ${symbol}=`]),
    'Fix x in x.js: it must return the sum.',
    'cat',
    'the old text occurs 0 times in x.js, expected once',
    '[exit status 1]',
    ...bugs.map((bug) => sourceOf(bug, bug.wrong.symbol)),
  ];
}

/** Pieces of more than one byte, in a fixed order. */
export function wholePieces(): readonly string[] {
  const pattern = new RegExp(piecePattern, 'gu');
  const pieces = sampleTexts().flatMap((text) => text.match(pattern) ?? []);
  return [...new Set(pieces)].filter((piece) => new TextEncoder().encode(piece).length > 1).sort();
}
