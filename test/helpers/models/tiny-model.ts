import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The added tokens of the tiny models. As in Qwen3, the turn's delimiters are special, the syntax of calls is not. */
export const special = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'] as const;
export const syntax = [
  '<tool_call>',
  '</tool_call>',
  '<think>',
  '</think>',
  '<tool_response>',
  '</tool_response>',
] as const;

export interface TinyModel extends AsyncDisposable {
  readonly dir: string;
}

/**
 * Writes a model directory whose vocabulary is the 256 bytes plus the added tokens, with the given chat template. Tokens of
 * `control` are special, as the turn's delimiters are, and the first of them ends a turn.
 */
export async function writeTinyModel(
  template?: string,
  added: readonly string[] = syntax,
  control: readonly string[] = [],
): Promise<TinyModel> {
  const dir = await mkdtemp(join(tmpdir(), 'temper-model-'));
  const chatTemplate =
    template ?? (await readFile(join(import.meta.dirname, '../../fixtures/hermes/chat_template.jinja'), 'utf8'));
  const vocab = Object.fromEntries(byteCharacters().map((character, id) => [character, id]));
  const tokens = [...new Set([...special, ...added, ...control])].map((content, index) => ({
    id: 256 + index,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: index < special.length || control.includes(content),
  }));
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: tokens,
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: { type: 'BPE', vocab, merges: [], unk_token: null, byte_fallback: false },
  };
  await writeFile(join(dir, 'tokenizer.json'), JSON.stringify(tokenizer));
  await writeFile(
    join(dir, 'tokenizer_config.json'),
    JSON.stringify({ bos_token: '<|endoftext|>', eos_token: { content: control[0] ?? '<|im_end|>' } }),
  );
  await writeFile(join(dir, 'chat_template.jinja'), chatTemplate);
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
}

/** The printable stand-ins of the bytes in byte-level vocabularies, in byte order. */
function byteCharacters(): string[] {
  const printable = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++));
}
