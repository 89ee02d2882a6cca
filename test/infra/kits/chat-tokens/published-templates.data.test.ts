import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { z } from 'zod';
import { checkPrefix } from '../../../../infra/kits/chat-tokens/check-prefix.ts';
import { renderText } from '../../../../infra/kits/chat-tokens/render.ts';
import { bash, readReply } from '../../../helpers/models/read-reply.ts';
import { type TinyFamily, tinyFamily, vocabularyOf } from '../../../helpers/models/tiny-families.ts';
import { optionalData } from '../../../helpers/optional-data.ts';
import { assertContinues, call, callBash, opening, result } from './continuation.ts';

type Verdicts = readonly [
  userTurn: boolean,
  toolResult: boolean,
  userAfterThought: boolean,
  resultAfterThought: boolean,
];

/**
 * The family of each published template, and whether it keeps earlier text: first letter after a user turn, second
 * after a tool result.
 */
const expected: Readonly<Record<string, readonly [family: string, plain: string, reasoned: string]>> = {
  deepseekv3: ['deepseek', '--', '--'],
  deepseekv3_training: ['deepseek', '--', '--'],
  glm4moe: ['glm', 'ut', '-t'],
  glm4moe_training: ['glm', 'ut', '-t'],
  gptoss: ['harmony', '-t', '-t'],
  gptoss_training: ['harmony', '-t', '-t'],
  llama3: ['plain', 'ut', '--'],
  llama3_1: ['llama', 'ut', '--'],
  llama3_2: ['llama', 'ut', '--'],
  llama3_training: ['plain', 'ut', '--'],
  nemotron_3_nano: ['function-xml', '--', '-t'],
  nemotron_3_nano_training: ['function-xml', '--', '-t'],
  qwen2_5: ['hermes', 'ut', '--'],
  qwen2_5_training: ['hermes', 'ut', '--'],
  qwen3: ['hermes', 'ut', '-t'],
  qwen3_training: ['hermes', 'ut', 'ut'],
  qwen3_5_think: ['function-xml', '-t', '-t'],
  qwen3_5_think_training: ['function-xml', 'ut', 'ut'],
  qwen3_5_nothink: ['function-xml', '-t', '--'],
  qwen3_5_nothink_training: ['function-xml', 'ut', '--'],
  qwen3_6: ['function-xml', '-t', '-t'],
  qwen3_6_training: ['function-xml', 'ut', 'ut'],
  qwen3_instruct_2507: ['hermes', 'ut', '--'],
  qwen3_instruct_2507_training: ['hermes', 'ut', '--'],
};

const { templates: publishedTemplates } = z
  .object({ templates: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(optionalData.chatTemplates, 'utf8')));

function verdictsOf(plain: string, reasoned: string): Verdicts {
  return [plain.includes('u'), plain.includes('t'), reasoned.includes('u'), reasoned.includes('t')];
}

it('every published template is known', () => {
  assert.deepEqual(Object.keys(publishedTemplates).sort(), Object.keys(expected).sort());
});

for (const [name, template] of Object.entries(publishedTemplates)) {
  describe(`the template ${name}`, () => {
    let tiny: TinyFamily;
    before(async () => {
      tiny = await tinyFamily(vocabularyOf(name), template);
    });
    after(() => tiny[Symbol.asyncDispose]());

    it('belongs to the expected family, and keeps the expected earlier text', () => {
      const [family, plain, reasoned] = expected[name] ?? assert.fail(`no expectation for ${name}`);
      assert.equal(tiny.model.family.name, family);
      const verdicts = checkPrefix(tiny.model).map(({ kept }) => kept);
      assert.deepEqual(verdicts, verdictsOf(plain, reasoned));
    });

    it('continues a branch as a full render would continue it, or not at all', () => {
      const [, plain = '', reasoned = ''] = expected[name] ?? [];
      assertContinues(tiny.model, plain, reasoned);
    });

    it('renders both calls of a reply, also where it takes one call alone', () => {
      const { model } = tiny;
      if (model.argumentsForm === 'none') return;
      const toolCalls = [callBash('functions.bash:0', 'ls'), callBash('functions.bash:1', 'pwd')];
      const text = renderText(model, [...opening, { ...call(''), toolCalls }, result], [bash], 'reply');
      for (const part of ['ls', 'pwd', result.text]) assert.ok(text.includes(part), part);
    });

    it('renders a call that its parser reads', () => {
      const { model } = tiny;
      if (model.family.name === 'plain') return assert.equal(model.argumentsForm, 'none');
      const prompt = renderText(model, opening, [bash], 'reply');
      const whole = renderText(model, [...opening, call('')], [bash], 'last-message');
      const at = whole.startsWith(prompt) ? prompt.length : whole.lastIndexOf('Fix 🦊 it.') + 'Fix 🦊 it.'.length;
      const ids = model.tokens.encode(whole.slice(at)).filter((id) => !model.stopTokenIds.includes(id));
      const got = readReply(model, ids, { prompt: whole.startsWith(prompt) ? prompt : '' });
      assert.deepEqual(got.statuses, ['ok']);
      assert.deepEqual(
        got.calls.map((each) => [each.name, JSON.parse(each.arguments)]),
        [['bash', { command: 'ls' }]],
      );
    });
  });
}
