import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Message } from '../../../../infra/kits/chat-tokens/conversation.ts';
import { loadModel } from '../../../../infra/kits/chat-tokens/load-model.ts';
import type { Model } from '../../../../infra/kits/chat-tokens/model.ts';
import { renderFull, renderText } from '../../../../infra/kits/chat-tokens/render.ts';
import { renderSuffix } from '../../../../infra/kits/chat-tokens/suffix.ts';
import { writeTinyModel } from '../../../helpers/models/tiny-model.ts';

const head: readonly Message[] = [
  { role: 'system', text: 'Be brief.' },
  { role: 'user', text: 'Fix é 🦊 it.' },
];
const reply: Message = {
  role: 'assistant',
  text: 'Look.',
  reasoning: '',
  toolCalls: [{ id: 'a', name: 'bash', arguments: '{"command": "ls"}' }],
};
const extensions: readonly (readonly Message[])[] = [
  [{ role: 'user', text: 'More.' }],
  [{ role: 'tool', callId: 'a', name: 'bash', text: 'calc.js' }],
  [
    { role: 'tool', callId: 'a', name: 'bash', text: 'calc.js' },
    { role: 'tool', callId: 'b', name: null, text: '' },
    { role: 'user', text: 'temper-reply-ends-here' },
  ],
];
const tools = [{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object', properties: {} } }];

const branchAt = (lastSampledId: number | undefined) => ({ lastSampledId, reasoned: { last: false, before: false } });

/** Asserts that the prompt, the reply as it would be sampled, and the suffix make up the full render. */
function assertExtends(model: Model, messages: readonly Message[]): void {
  const prompt = renderFull(model, { messages: head, tools });
  const closed = model.tokens.encode(renderText(model, [...head, reply], tools, 'last-message'));
  const end = closed.lastIndexOf(model.tokens.idOf('<|im_end|>') ?? -1);
  const sampled = closed.slice(prompt.length, end + 1);
  const suffix = renderSuffix(model, messages, branchAt(sampled.at(-1)));
  assert.ok(suffix !== null);
  const full = renderFull(model, { messages: [...head, reply, ...messages], tools });
  assert.deepEqual([...prompt, ...sampled, ...suffix], full);
}

describe('rendering', () => {
  it('continues a branch with a suffix as the full render would', async () => {
    await using dir = await writeTinyModel();
    const model = await loadModel(dir.dir);
    for (const messages of extensions) assertExtends(model, messages);
  });

  it('closes a reply that was cut short first', async () => {
    await using dir = await writeTinyModel();
    const model = await loadModel(dir.dir);
    const suffix = renderSuffix(model, [{ role: 'user', text: 'Continue.' }], branchAt(65));
    assert.deepEqual(
      suffix,
      model.tokens.encode('<|im_end|>\n<|im_start|>user\nContinue.<|im_end|>\n<|im_start|>assistant\n'),
    );
  });

  it('passes no tools, rather than an empty list, to the template', async () => {
    const asking =
      "{%- if tools is defined %}{{- 'Tools. ' }}{% endif %}{% for m in messages %}{{- m.content }}{% endfor %}{# <tool_call> arguments #}";
    await using dir = await writeTinyModel(asking);
    const model = await loadModel(dir.dir);
    const render = (offered: typeof tools) => renderText(model, [{ role: 'user', text: 'x' }], offered, 'reply');
    assert.deepEqual([render([]), render(tools)], ['x', 'Tools. x']);
  });

  it('makes no suffix for a template that rewrites earlier text', async () => {
    const counting =
      "{%- for m in messages %}{{- m.role + m.content + (messages | length | string) + '\\n' }}{% endfor %}";
    await using dir = await writeTinyModel(counting);
    const model = await loadModel(dir.dir);
    assert.equal(model.family.name, 'plain');
    assert.equal(renderSuffix(model, [{ role: 'user', text: 'b' }], branchAt(0)), null);
  });

  it('throws when the template refuses a conversation, and makes no suffix when it refuses a stand-in', async () => {
    const strict =
      "{%- if messages[0].content != 'good' %}{{ raise_exception('be good') }}{% endif %}{{ messages[0].content }}";
    await using dir = await writeTinyModel(strict);
    const model = await loadModel(dir.dir);
    assert.equal(renderSuffix(model, [{ role: 'user', text: 'b' }], branchAt(0)), null);
    const ask = (text: string) => renderFull(model, { messages: [{ role: 'user', text }], tools: [] });
    assert.deepEqual(ask('good'), model.tokens.encode('good'));
    assert.throws(() => ask('bad'), { name: 'TemplateRejection', message: /be good/ });
  });
});

describe('a model directory', () => {
  it('is rejected with the file that is missing or invalid', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'temper-model-'));
    await assert.rejects(loadModel(dir), /tokenizer\.json is missing/);
    await writeFile(join(dir, 'tokenizer.json'), '{');
    await assert.rejects(loadModel(dir), { name: 'InvalidModelDirectory', message: /tokenizer\.json/ });
    await rm(dir, { recursive: true });
  });

  it('is rejected when its tool-call syntax is unknown', async () => {
    await using dir = await writeTinyModel('{{ tools }}<tool_call><function=f>');
    await assert.rejects(loadModel(dir.dir), /does not parse/);
  });

  it("ends turns at its configured tokens and at its family's", async () => {
    await using dir = await writeTinyModel();
    await writeFile(join(dir.dir, 'generation_config.json'), '{"eos_token_id": [256]}');
    const model = await loadModel(dir.dir);
    assert.deepEqual(model.stopTokenIds, [256, 258]);
  });
});
