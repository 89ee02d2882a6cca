import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import type { Message } from '../../../../infra/kits/chat-tokens/conversation.ts';
import { renderText } from '../../../../infra/kits/chat-tokens/render.ts';
import { renderSuffix } from '../../../../infra/kits/chat-tokens/suffix.ts';
import { tinyFamily, type Vocabulary } from '../../../helpers/models/tiny-families.ts';
import { assertContinues, callBash, result, user } from './continuation.ts';

/**
 * The templates among the fixtures, and whether each keeps earlier text: first letter after a user turn, second after a
 * tool result.
 */
const own: readonly (readonly [fixture: string, vocabulary: Vocabulary, plain: string, reasoned: string])[] = [
  ['function-xml', 'qwen', 'ut', 'ut'],
  ['glm', 'glm', 'ut', 'ut'],
  ['deepseek', 'deepseek', 'ut', '--'],
  ['kimi', 'kimi', 'ut', 'ut'],
  ['harmony', 'gptoss', '-t', '-t'],
  ['llama', 'llama', 'ut', '--'],
];

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
