import { reminder, systemPrompt } from '../../../infra/agents/mini/prompt.ts';
import { tools } from '../../../infra/agents/mini/tools.ts';
import { bugAt, files, names, operators, parameterPairs, sourceOf } from '../../../infra/tasks/generated/bug.ts';

/** The delimiters of the conversation, which decoding omits. */
export const specialTokens = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'] as const;
/** The delimiters of the Hermes syntax, which are text, but one token each. */
export const markers = ['<tool_call>', '</tool_call>', '<tool_response>', '</tool_response>'] as const;

/** The texts between the values of a tool call. */
const glue = ['\n{"name": "', '", "arguments": {"', '", "arguments": {}}\n', '": "', '", "', '"}}\n'] as const;

const escaped = (text: string): string => text.replaceAll(/[{}|*+?.()[\]\\^$]/g, '\\$&').replaceAll('\n', '\\n');

/** The pattern that splits text into pieces, valid in Oniguruma and in JavaScript. */
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

/** The texts of generated tasks and of mini, whose pieces become tokens. */
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
    ...tools.flatMap(({ name, schema }) => [name, ` ${name}`, ...Object.keys(schema.properties ?? {})]),
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

/**
 * The pieces of more than one byte that are tokens of the embedded policy, in a fixed order. All single bytes are tokens too,
 * so that any text can be encoded and decoded exactly.
 */
export function wholePieces(): readonly string[] {
  const pattern = new RegExp(piecePattern, 'gu');
  const pieces = sampleTexts().flatMap((text) => text.match(pattern) ?? []);
  return [...new Set(pieces)].filter((piece) => new TextEncoder().encode(piece).length > 1).sort();
}
