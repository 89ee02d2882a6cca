import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readAnswer } from '../../../../infra/agents/terminal/answer.ts';
import { createTools } from '../../../../infra/agents/terminal/tools.ts';
import { readReply } from '../../../helpers/models/read-reply.ts';
import { tinyFamily, type Vocabulary } from '../../../helpers/models/tiny-families.ts';

const fixture = (path: string): string => readFileSync(join(import.meta.dirname, '../../../fixtures', path), 'utf8');

/** A template without a word about tools. */
const plain = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

interface Case {
  readonly family: string;
  readonly vocabulary: Vocabulary;
  readonly template: string;
  /** The start of a reply that is text. */
  readonly opening?: string;
}

const cases: readonly Case[] = [
  { family: 'plain', vocabulary: 'qwen', template: plain },
  { family: 'hermes', vocabulary: 'qwen', template: fixture('hermes/chat_template.jinja') },
  { family: 'function-xml', vocabulary: 'qwen', template: fixture('families/function-xml.jinja') },
  { family: 'glm', vocabulary: 'glm', template: fixture('families/glm.jinja') },
  { family: 'deepseek', vocabulary: 'deepseek', template: fixture('families/deepseek.jinja') },
  { family: 'kimi', vocabulary: 'kimi', template: fixture('families/kimi.jinja') },
  { family: 'llama', vocabulary: 'llama', template: fixture('families/llama.jinja') },
  {
    family: 'harmony',
    vocabulary: 'gptoss',
    template: fixture('families/harmony.jinja'),
    opening: '<|channel|>final<|message|>',
  },
];

const object = JSON.stringify({
  analysis: 'I see a prompt.',
  plan: 'I look.',
  commands: [{ keystrokes: `printf '%s\\n' "a" | grep -c '{"name": "x"}'\n`, duration: 0.5 }],
  task_complete: false,
});
const replies: Readonly<Record<string, string>> = {
  'an object': object,
  'an object in a fence': `I look first.\n\n\`\`\`json\n${object}\n\`\`\``,
  'an object after reasoning': `<think>\nWhat is there? {"commands": []}\n</think>\n\n${object}`,
  "an object in another family's tags": `<tool_call>\n${object}\n</tool_call>`,
};

describe('commands as text', () => {
  const desk = { terminal: { type: async () => {}, show: () => '', close: () => {} }, longestWaitSec: 1, submit: null };
  const { tools } = createTools(desk);
  const offered = tools.map(({ name, description, schema }) => ({ name, description, parameters: schema }));

  for (const { family, vocabulary, template, opening = '' } of cases) {
    it(`reach the agent whole in the family ${family}, whether it offers tools or not`, async () => {
      await using tiny = await tinyFamily(vocabulary, template);
      assert.equal(tiny.model.family.name, family);
      for (const [title, reply] of Object.entries(replies)) {
        for (const given of [[], offered]) {
          const read = readReply(tiny.model, tiny.model.tokens.encode(opening + reply), { tools: given });
          const evidence = `${title} with ${given.length} tools: ${JSON.stringify(read)}`;
          assert.deepEqual(read.calls, [], evidence);
          assert.deepEqual(readAnswer(read.text), readAnswer(object), evidence);
        }
      }
    });
  }
});
