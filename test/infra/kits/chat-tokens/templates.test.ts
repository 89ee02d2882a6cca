import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { checkPrefix } from '../../../../infra/kits/chat-tokens/check-prefix.ts';
import type { AssistantMessage, Message } from '../../../../infra/kits/chat-tokens/conversation.ts';
import type { Model } from '../../../../infra/kits/chat-tokens/model.ts';
import { renderFull, renderText } from '../../../../infra/kits/chat-tokens/render.ts';
import { renderSuffix } from '../../../../infra/kits/chat-tokens/suffix.ts';
import { bash, readReply } from '../../../helpers/models/read-reply.ts';
import {
  publishedTemplates,
  type TinyFamily,
  tinyFamily,
  type Vocabulary,
  vocabularyOf,
} from '../../../helpers/models/tiny-families.ts';

type Verdicts = readonly [
  userTurn: boolean,
  toolResult: boolean,
  userAfterThought: boolean,
  resultAfterThought: boolean,
];

/** The family of each published template, and whether it keeps earlier text: first letter after a user turn, second after a tool result. */
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

/** The same of this project's own fixtures, for families of which no template is published beside the checkout. */
const own: readonly (readonly [fixture: string, vocabulary: Vocabulary, plain: string, reasoned: string])[] = [
  ['function-xml', 'qwen', 'ut', 'ut'],
  ['glm', 'glm', 'ut', 'ut'],
  ['deepseek', 'deepseek', 'ut', '--'],
  ['kimi', 'kimi', 'ut', 'ut'],
  ['harmony', 'gptoss', '-t', '-t'],
  ['llama', 'llama', 'ut', '--'],
];

function verdictsOf(plain: string, reasoned: string): Verdicts {
  return [plain.includes('u'), plain.includes('t'), reasoned.includes('u'), reasoned.includes('t')];
}

const callBash = (id: string, command: string) => ({ id, name: 'bash', arguments: JSON.stringify({ command }) });
const speak = (reasoning: string): AssistantMessage => ({
  role: 'assistant',
  text: 'Look é 🦊.',
  reasoning,
  toolCalls: [],
});
const call = (reasoning: string): AssistantMessage => ({
  role: 'assistant',
  text: '',
  reasoning,
  toolCalls: [callBash('functions.bash:0', 'ls')],
});
const user: Message = { role: 'user', text: 'More <é>.' };
const result: Message = { role: 'tool', callId: 'functions.bash:0', name: 'bash', text: 'calc.js' };
const opening: readonly Message[] = [
  { role: 'system', text: 'Be brief.' },
  { role: 'user', text: 'Fix 🦊 it.' },
];

/** Branches of one, two and three turns; each is followed by a user turn or a tool result, as its last reply asks. */
const branches = (reasoning: string): readonly (readonly [head: readonly Message[], reply: AssistantMessage])[] => [
  [opening, speak(reasoning)],
  [opening, call(reasoning)],
  [[...opening, call(reasoning), result], speak(reasoning)],
  [[...opening, call(reasoning), result], call(reasoning)],
  [[...opening, speak(reasoning), user], call(reasoning)],
  [[...opening, call(reasoning), result, speak(reasoning), user], call(reasoning)],
];

/**
 * Asserts that the full render begins with the prompt, contains the reply, and ends with the suffix right after a stop token
 * of the model. Returns whether there is a suffix.
 */
function assertSuffixIsFullRender(model: Model, head: readonly Message[], reply: AssistantMessage): boolean {
  const next = reply.toolCalls.length === 0 ? user : result;
  const full = renderFull(model, { messages: [...head, reply, next], tools: [bash] });
  const text = renderText(model, [...head, reply, next], [bash], 'reply');
  const prompt = renderText(model, head, [bash], 'reply');
  const reasoned = {
    last: reply.reasoning !== '',
    before: head.some((m) => m.role === 'assistant' && m.reasoning !== ''),
  };
  const stop = model.stopTokenIds.find((id) => {
    const suffix = renderSuffix(model, [next], { lastSampledId: id, reasoned });
    return suffix !== null;
  });
  if (stop === undefined) return false;
  const suffix = renderSuffix(model, [next], { lastSampledId: stop, reasoned }) ?? [];
  assert.deepEqual(full.slice(-suffix.length), suffix);
  assert.equal(full.at(-suffix.length - 1), stop);
  assert.ok(text.startsWith(prompt), 'the prompt is kept');
  const replied = text.slice(prompt.length);
  const printsCall = reply.toolCalls.length > 0 && model.argumentsForm !== 'none';
  for (const part of [reply.text, reply.reasoning, printsCall ? '"ls"' : '']) {
    assert.ok(replied.includes(part) || replied.includes(part.replaceAll('"', '')), `${part} is kept`);
  }
  return true;
}

function assertContinues(model: Model, plain: string, reasoned: string): void {
  for (const [reasoning, kept] of [
    ['', plain],
    ['Because.', reasoned],
  ] as const) {
    for (const [head, reply] of branches(reasoning)) {
      const given = assertSuffixIsFullRender(model, head, reply);
      assert.equal(given, kept.includes(reply.toolCalls.length === 0 ? 'u' : 't'));
    }
  }
}

it('a branch of each family is continued as a full render would continue it, or not at all', async () => {
  for (const [name, vocabulary, plain, reasoned] of own) {
    const path = join(import.meta.dirname, `../../../fixtures/families/${name}.jinja`);
    await using tiny = await tinyFamily(vocabulary, readFileSync(path, 'utf8'));
    assertContinues(tiny.model, plain, reasoned);
  }
});

it('a reply that ended with a token other than the one the template writes is not continued', async () => {
  const path = join(import.meta.dirname, '../../../fixtures/families/glm.jinja');
  await using tiny = await tinyFamily('glm', readFileSync(path, 'utf8'));
  const behind = (token: string) => {
    const lastSampledId = tiny.model.tokens.idOf(token) ?? assert.fail(token);
    return renderSuffix(tiny.model, [result], { lastSampledId, reasoned: { last: false, before: false } });
  };
  assert.equal(behind('<|user|>'), null);
  assert.notEqual(behind('<|observation|>'), null);
});

it('a model that numbers its calls gets its own ids where the client used others', async () => {
  const path = join(import.meta.dirname, '../../../fixtures/families/kimi.jinja');
  await using tiny = await tinyFamily('kimi', readFileSync(path, 'utf8'));
  const round = (id: string): readonly Message[] => [
    { role: 'assistant', text: '', reasoning: '', toolCalls: [callBash(id, 'ls')] },
    { role: 'tool', callId: id, name: null, text: 'x' },
  ];
  const text = renderText(tiny.model, [user, ...round('call_1'), ...round('call_2')], [], 'reply');
  const made: Message = { role: 'tool', callId: 'call_1', name: null, text: 'x' };
  const suffix = renderSuffix(tiny.model, [made], {
    lastSampledId: undefined,
    reasoned: { last: false, before: false },
  });
  assert.equal(suffix, null, 'its number is known in a full render only');
  assert.deepEqual(
    text.match(/functions\.bash:\d|call_\d/g),
    [0, 0, 1, 1].map((index) => `functions.bash:${index}`),
  );
});

it('every published template is known', { skip: publishedTemplates === null }, () => {
  assert.deepEqual(Object.keys(publishedTemplates ?? {}).sort(), Object.keys(expected).sort());
});

for (const [name, template] of Object.entries(publishedTemplates ?? {})) {
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
