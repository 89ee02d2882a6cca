import { Tokenizer } from '@huggingface/tokenizers';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { limitWords } from './long-words.ts';

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
  rememberWords(tokenizer.pre_tokenizer);
  if (tokenizer.model !== null) limitWords(tokenizer.model);
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

/** The number of words whose byte-level form is kept: some 3 MB. */
const keptWords = 20_000;
/** A longer word is rarely seen twice. */
const longestKeptWord = 32;

/** The members of the library's pre-tokenizers that are used here: of a sequence, and of the byte-level one. */
interface PreTokenizer {
  readonly tokenizers?: readonly (PreTokenizer | null)[];
  readonly byte_encoder?: object;
  readonly use_regex?: boolean;
  pre_tokenize_text(text: string, options?: unknown): string[];
}

/**
 * Keeps the byte-level form of words, which the library writes each time, byte by byte, at more cost than all other steps of
 * encoding. A word's form depends on nothing else; nothing is kept where the byte-level pre-tokenizer splits text itself.
 */
function rememberWords(preTokenizer: PreTokenizer | null): void {
  for (const part of preTokenizer?.tokenizers ?? []) rememberWords(part);
  if (preTokenizer?.byte_encoder === undefined || preTokenizer.use_regex !== false) return;
  const write = preTokenizer.pre_tokenize_text.bind(preTokenizer);
  const known = new LRUCache<string, string[]>({ max: keptWords });
  preTokenizer.pre_tokenize_text = (word, options) => {
    const found = known.get(word);
    if (found !== undefined) return found;
    const written = write(word, options);
    if (word.length <= longestKeptWord) known.set(copied(word), written);
    return written;
  };
}

/** Copies a text. A part of a text keeps the whole one alive, which here is a prompt of any length. */
const copied = (text: string): string => Buffer.from(text, 'utf16le').toString('utf16le');
