import { markers, piecePattern, specialTokens, wholePieces } from './vocabulary.ts';

/** Builds the files of the embedded policy's model directory, by name. The weights are drawn from the seed in config.json. */
export function modelFiles(): ReadonlyMap<string, string> {
  const tokenizer = tokenizerJson();
  const vocabulary = Object.keys(tokenizer.model.vocab).length + tokenizer.added_tokens.length;
  const json = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;
  return new Map([
    ['config.json', json(configJson(vocabulary))],
    ['generation_config.json', json({ eos_token_id: tokenizer.added_tokens[specialTokens.indexOf('<|im_end|>')]?.id })],
    ['tokenizer.json', json(tokenizer)],
    ['tokenizer_config.json', json(tokenizerConfig)],
    ['chat_template.jinja', chatTemplate],
  ]);
}

const rowsPerBlock = 8;

const configJson = (vocabulary: number) => ({
  model_type: 'temper-tiny',
  vocab_size: Math.ceil(vocabulary / rowsPerBlock) * rowsPerBlock,
  hidden_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  intermediate_size: 256,
  max_position_embeddings: 512,
  seed: 0,
});

const tokenizerConfig = {
  tokenizer_class: 'PreTrainedTokenizerFast',
  eos_token: '<|im_end|>',
  pad_token: '<|endoftext|>',
  model_max_length: 512,
  clean_up_tokenization_spaces: false,
};

function tokenizerJson() {
  const letters = byteLetters();
  const spelled = (text: string): string =>
    Array.from(new TextEncoder().encode(text), (byte) => letters[byte] ?? '').join('');
  const vocabulary = [...letters, ...wholePieces().map(spelled)];
  const added = [...specialTokens, ...markers];
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added.map((content, index) => ({
      id: vocabulary.length + index,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: index < specialTokens.length,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: piecePattern }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      // A piece of the vocabulary is one token; any other piece is spelled in bytes.
      ignore_merges: true,
      vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
      merges: [],
    },
  };
}

/**
 * The characters with which byte-level tokenizers write bytes (GPT-2's table): printable bytes stand for themselves, the
 * others for the characters from U+0100 on, in order.
 */
function byteLetters(): readonly string[] {
  const printable = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++));
}

/** A ChatML template with Hermes tool calls. A rendered prompt does not change when messages are added. */
const chatTemplate = `{%- if messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content }}
{%- if tools %}
{{- '\\nTools:' }}
{%- for tool in tools %}
{{- ' ' + tool.function.name }}
{%- endfor %}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}
`;
