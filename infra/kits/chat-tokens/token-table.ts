import { Tokenizer } from '@huggingface/tokenizers';
import { z } from 'zod';

/** Converts text to ids and back, without adding special tokens: templates write all of them themselves. */
export interface TokenTable {
  /** Returns the ids of a text. */
  encode(text: string): number[];
  /** Returns the text of ids, without special tokens and without ids that the vocabulary does not name (padding rows). */
  decode(ids: readonly number[]): string;
  /** Returns a token's text if it is the same in every position; null otherwise, and for part of a character. */
  textOf(id: number): string | null;
  /** Returns a token's text for people to read: a special token by its name, part of a character as U+FFFD. */
  nameOf(id: number): string;
  /** Returns the id of a token by its text; null when the text is not a single token. */
  idOf(token: string): number | null;
  readonly specialIds: ReadonlySet<number>;
}

const decoderOf = z.looseObject({ decoder: z.looseObject({ type: z.string() }).nullish() });

export function createTokenTable(tokenizerJson: object, tokenizerConfig: object): TokenTable {
  const tokenizer = new Tokenizer(tokenizerJson, tokenizerConfig);
  const specialIds = new Set<number>();
  for (const [id, token] of tokenizer.get_added_tokens_decoder()) if (token.special) specialIds.add(id);

  const decoder = decoderOf.safeParse(tokenizerJson).data?.decoder;
  const known = new Map<number, string | null>();

  /** Returns a token's text. Byte-level tokens decode alone; other decoders look at the neighbours. */
  function textOf(id: number): string | null {
    const found = known.get(id);
    if (found !== undefined) return found;
    const text = decoder?.type === 'ByteLevel' ? decode([id]) : null;
    const clean = text === null || text.includes('\uFFFD') ? null : text;
    known.set(id, clean);
    return clean;
  }

  const isText = (id: number): boolean => !specialIds.has(id) && tokenizer.id_to_token(id) !== undefined;
  const decode = (ids: readonly number[]): string => {
    const readable = ids.filter(isText);
    return readable.length === 0 ? '' : tokenizer.decode(readable, { clean_up_tokenization_spaces: false });
  };
  return {
    specialIds,
    encode: (text) => (text === '' ? [] : tokenizer.encode(text, { add_special_tokens: false }).ids),
    decode,
    textOf,
    nameOf: (id) => (isText(id) ? decode([id]) : (tokenizer.id_to_token(id) ?? `<${id}>`)),
    idOf: (token) => tokenizer.token_to_id(token) ?? null,
  };
}
