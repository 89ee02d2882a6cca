import { loadModel, type Model } from '../../../infra/kits/chat-tokens/index.ts';
import { syntax, type TinyModel, writeTinyModel } from './tiny-model.ts';

/** The tokens of each family's syntax: those that are text, and the special ones. */
const vocabularies = {
  qwen: { added: syntax, control: [] },
  glm: {
    added: [...syntax, '<arg_key>', '</arg_key>', '<arg_value>', '</arg_value>'],
    control: ['<|user|>', '<|observation|>', '<|assistant|>', '<|system|>', '[gMASK]', '<sop>'],
  },
  deepseek: {
    added: ['<think>', '</think>'],
    control: [
      '<｜end▁of▁sentence｜>',
      '<｜User｜>',
      '<｜Assistant｜>',
      '<｜tool▁calls▁begin｜>',
      '<｜tool▁calls▁end｜>',
      '<｜tool▁call▁begin｜>',
      '<｜tool▁call▁end｜>',
      '<｜tool▁sep｜>',
      '<｜tool▁output▁begin｜>',
      '<｜tool▁output▁end｜>',
    ],
  },
  kimi: {
    added: ['<think>', '</think>'],
    control: [
      '<|im_end|>',
      '<|im_user|>',
      '<|im_assistant|>',
      '<|im_system|>',
      '<|im_middle|>',
      '<|tool_calls_section_begin|>',
      '<|tool_calls_section_end|>',
      '<|tool_call_begin|>',
      '<|tool_call_end|>',
      '<|tool_call_argument_begin|>',
    ],
  },
  gptoss: {
    added: [],
    control: ['<|return|>', '<|call|>', '<|start|>', '<|end|>', '<|message|>', '<|channel|>', '<|constrain|>'],
  },
  llama: {
    added: [],
    control: ['<|eot_id|>', '<|eom_id|>', '<|start_header_id|>', '<|end_header_id|>', '<|python_tag|>'],
  },
} as const;

export type Vocabulary = keyof typeof vocabularies;

/** Returns the vocabulary for a published template, by its name. */
export function vocabularyOf(template: string): Vocabulary {
  const known = (['glm', 'deepseek', 'gptoss', 'llama'] as const).find((name) => template.startsWith(name));
  return known ?? 'qwen';
}

export const delimitersOf = (vocabulary: Vocabulary): readonly string[] => [
  ...vocabularies[vocabulary].added,
  ...vocabularies[vocabulary].control,
];

export interface TinyFamily extends AsyncDisposable {
  readonly model: Model;
}

/** Creates a tiny model of a family. Unless `tokens`, its vocabulary has a token for the delimiter that ends a turn only. */
export async function tinyFamily(vocabulary: Vocabulary, template: string, tokens = true): Promise<TinyFamily> {
  const { added, control } = vocabularies[vocabulary];
  const dir: TinyModel = await (tokens
    ? writeTinyModel(template, added, control)
    : writeTinyModel(template, [], control.slice(0, 1)));
  return { model: await loadModel(dir.dir), [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() };
}
