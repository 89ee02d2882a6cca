import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { callsOf, isReadWhole, syntaxTexts } from '../../../helpers/models/random-calls.ts';
import { type TinyFamily, tinyFamily, type Vocabulary } from '../../../helpers/models/tiny-families.ts';

const fixture = (path: string): string => readFileSync(join(import.meta.dirname, '../../../fixtures', path), 'utf8');

interface Case {
  readonly family: string;
  readonly vocabulary: Vocabulary;
  readonly template: string;
  /**
   * The least shares of replies that are read as a whole, where most of a value are delimiters and where few are. They are 1
   * where values are JSON strings, so that none of them can be mistaken.
   */
  readonly least: readonly [hostile: number, usual: number];
  /** The number of calls in one reply. */
  readonly most: number;
}

const cases: readonly Case[] = [
  {
    family: 'hermes',
    vocabulary: 'qwen',
    template: fixture('hermes/chat_template.jinja'),
    least: [1, 1],
    most: 3,
  },
  {
    family: 'function-xml',
    vocabulary: 'qwen',
    template: fixture('families/function-xml.jinja'),
    least: [0.4, 0.7],
    most: 3,
  },
  {
    family: 'glm',
    vocabulary: 'glm',
    template: fixture('families/glm.jinja'),
    least: [0.65, 0.95],
    most: 3,
  },
  {
    family: 'deepseek',
    vocabulary: 'deepseek',
    template: fixture('families/deepseek.jinja'),
    least: [1, 1],
    most: 3,
  },
  {
    family: 'kimi',
    vocabulary: 'kimi',
    template: fixture('families/kimi.jinja'),
    least: [1, 1],
    most: 3,
  },
  {
    family: 'harmony',
    vocabulary: 'gptoss',
    template: fixture('families/harmony.jinja'),
    least: [1, 1],
    most: 1,
  },
  {
    family: 'llama',
    vocabulary: 'llama',
    template: fixture('families/llama.jinja'),
    least: [1, 1],
    most: 1,
  },
];

const numRuns = 1_000;
for (const { family, vocabulary, template, least, most } of cases) {
  describe(`values in calls of the ${family} family`, () => {
    let tiny: TinyFamily;
    let textual: TinyFamily;
    before(async () => {
      tiny = await tinyFamily(vocabulary, template);
      textual = await tinyFamily(vocabulary, template, false);
    });
    after(async () => {
      await tiny[Symbol.asyncDispose]();
      await textual[Symbol.asyncDispose]();
    });

    for (const [weight, rest, share] of [
      [3, 1, least[0]],
      [1, 4, least[1]],
    ] as const) {
      it(`are read as they were rendered, or no call of their reply is given: ${weight} delimiters to ${rest} others`, () => {
        let whole = 0;
        fc.assert(
          fc.property(
            fc.array(callsOf(syntaxTexts[family] ?? [], weight, rest), { minLength: 1, maxLength: most }),
            fc.boolean(),
            (said, hasTokens) => {
              const { model } = hasTokens || family === 'harmony' ? tiny : textual;
              if (isReadWhole(model, said)) whole += 1;
            },
          ),
          { numRuns, seed: 46 },
        );
        assert.ok(whole >= numRuns * share, `only ${whole} of ${numRuns} replies were read as a whole`);
      });
    }
  });
}
