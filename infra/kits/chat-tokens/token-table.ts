import { Tokenizer } from '@huggingface/tokenizers';
import { z } from 'zod';

/** Text to ids and back, without any post-processing of its own: templates write all special tokens themselves. */
export interface TokenTable {
  encode(text: string): number[];
  /** Special tokens are left out, and ids that the vocabulary does not name (embedding rows kept for padding). */
  decode(ids: readonly number[]): string;
  /** The text of a token that reads the same wherever it stands; null for part of a character, or for a positional one. */
  textOf(id: number): string | null;
  /** For people to read: a special token by its name, part of a character as U+FFFD. */
  nameOf(id: number): string;
  /** Null when the text is not one token. */
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

  /** Byte-level tokens are bytes; other decoders look at what is around. */
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
