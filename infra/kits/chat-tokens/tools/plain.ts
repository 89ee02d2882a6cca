import { createPieceReader } from '../pieces.ts';
import type { ParserInput, ReplyEvent, ReplyParser } from './parser.ts';
import { createProse } from './prose.ts';

/** Creates a parser for a model without a tool-call syntax: its whole reply is text. */
export function createPlainParser({ tokens }: ParserInput): ReplyParser {
  const reader = createPieceReader(tokens, []);
  const prose = createProse();
  const read = (pieces: ReturnType<typeof reader.end>): readonly ReplyEvent[] => {
    const text = prose.push(pieces.map((piece) => ('text' in piece ? piece.text : '')).join(''));
    return text === '' ? [] : [{ kind: 'text', text }];
  };
  return { push: (ids) => read(reader.push(ids)), end: () => read(reader.end()) };
}
