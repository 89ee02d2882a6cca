import { createHermesParser } from './tools/hermes.ts';
import type { ParserFactory } from './tools/parser.ts';
import { createPlainParser } from './tools/plain.ts';

/** What the templates of one family have in common beyond what a template can say itself. */
export interface Family {
  readonly name: string;
  /** Tokens with which the model ends its turn, where the vocabulary has them; besides the configured ones. */
  readonly turnClose: readonly string[];
  readonly createParser: ParserFactory;
}

interface Detection extends Family {
  /** Seen in the structure of the template, never in the name of the model. */
  readonly matches: (template: string) => boolean;
}

/** First match wins. */
const families: readonly Detection[] = [
  {
    name: 'hermes',
    turnClose: ['<|im_end|>'],
    createParser: createHermesParser,
    matches: (template) =>
      template.includes('<tool_call>') &&
      template.includes('arguments') &&
      !template.includes('<function=') &&
      !template.includes('<arg_key>'),
  },
  {
    name: 'plain',
    turnClose: ['<|im_end|>', '<|eot_id|>'],
    createParser: createPlainParser,
    matches: (template) => !/\btool/.test(template),
  },
];

/** Null when the template has a tool-call syntax that no parser knows. */
export function familyOf(template: string): Family | null {
  return families.find((family) => family.matches(template)) ?? null;
}
