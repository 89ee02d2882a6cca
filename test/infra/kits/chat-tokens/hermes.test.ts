import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { loadModel } from '../../../../infra/kits/chat-tokens/load-model.ts';
import type { Model } from '../../../../infra/kits/chat-tokens/model.ts';
import type { ReplyEvent } from '../../../../infra/kits/chat-tokens/tools/parser.ts';
import { syntax, type TinyModel, writeTinyModel } from '../../../helpers/models/tiny-model.ts';

let dir: TinyModel;
let model: Model;
let withoutMarkers: TinyModel;
let textual: Model;

before(async () => {
  dir = await writeTinyModel();
  model = await loadModel(dir.dir);
  withoutMarkers = await writeTinyModel(undefined, []);
  textual = await loadModel(withoutMarkers.dir);
});
after(async () => {
  await dir[Symbol.asyncDispose]();
  await withoutMarkers[Symbol.asyncDispose]();
});

interface Read {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly statuses: readonly string[];
}

function read(from: Model, ids: readonly number[], chunk = 1, prompt = ''): Read {
  const parser = from.family.createParser({
    tokens: from.tokens,
    tools: ['bash', 'edit'].map((name) => ({ name, description: null, parameters: null })),
    promptIds: from.tokens.encode(prompt),
  });
  const events: ReplyEvent[] = [];
  for (let at = 0; at < ids.length; at += chunk) events.push(...parser.push(ids.slice(at, at + chunk)));
  events.push(...parser.end());
  const texts = (kind: string): string =>
    events.map((event) => (event.kind === kind && 'text' in event ? event.text : '')).join('');
  return {
    text: texts('text'),
    reasoning: texts('reasoning'),
    calls: events.flatMap((event) =>
      event.kind === 'call' ? [{ name: event.call.name, arguments: event.call.arguments }] : [],
    ),
    statuses: events.flatMap((event) => ('call' in event ? [event.call.status] : [])),
  };
}

const call = (body: string): string => `<tool_call>\n${body}\n</tool_call>`;

describe('the Hermes parser', () => {
  it('reads reasoning, text and parallel calls, and keeps numbers as they were sampled', () => {
    const first = call('{"name": "bash", "arguments": {"command": "ls", "n": 1.0, "id": 12345678901234567890}}');
    const second = call('{"name": "edit", "arguments": {}}');
    const ids = model.tokens.encode(`<think>\nwhy\n</think>\n\nI look.\n${first}\n${second}<|im_end|>`);
    for (const chunk of [1, 7, ids.length]) {
      assert.deepEqual(read(model, ids, chunk), {
        text: 'I look.',
        reasoning: 'why',
        calls: [
          { name: 'bash', arguments: '{"command": "ls", "n": 1.0, "id": 12345678901234567890}' },
          { name: 'edit', arguments: '{}' },
        ],
        statuses: ['ok', 'ok'],
      });
    }
  });

  it('continues the reasoning that the prompt has opened', () => {
    const ids = model.tokens.encode('hm\n</think>\n\ndone<|im_end|>');
    assert.deepEqual(read(model, ids, 1, '<|im_start|>assistant\n<think>\n'), {
      text: 'done',
      reasoning: 'hm',
      calls: [],
      statuses: [],
    });
  });

  it('reports the problem of a call and passes its text to the agent', () => {
    const cases: readonly (readonly [string, string])[] = [
      ['<tool_call>\n{"name": "bash", "arguments": {}}', 'unclosed'],
      [call('{"name": "bash", "arguments": {'), 'invalid-json'],
      [call('["bash"]'), 'invalid-json'],
      [call('{"arguments": {}}'), 'missing-name'],
      [call('{"name": "bash", "arguments": "ls"}'), 'invalid-arguments'],
    ];
    for (const [said, status] of cases) {
      const got = read(model, model.tokens.encode(said));
      assert.deepEqual([got.statuses, got.calls, got.text], [[status], [], said], status);
    }
  });

  it('passes on a call of an unknown tool, so that the agent can answer it', () => {
    const got = read(model, model.tokens.encode(call('{"name": "fly", "arguments": {}}')));
    assert.deepEqual([got.statuses, got.calls.length], [['unknown-tool'], 1]);
  });

  it('gives no call that may be part of an earlier one', () => {
    const second = call('{"name": "bash"}');
    for (const [said, statuses, count] of [
      [`<tool_call>{"na${second}`, ['invalid-json'], 0],
      [`<tool_call>{"name": "edit", "arguments": {}}${second}`, ['unclosed', 'ok'], 1],
      [`${call('{"name": "edit", "arguments": {},}')}${second}`, ['invalid-json', 'ok'], 1],
      [`${call('{"name": "edit", "arguments": {"a": "b"}}')}" and ${second}"}}</tool_call>`, ['ambiguous'], 0],
    ] as const) {
      const got = read(model, model.tokens.encode(said));
      assert.deepEqual([got.statuses, got.calls.length], [statuses, count], said);
    }
  });

  it('does not take text for a marker where the marker is a token', () => {
    const spelled = '<tool_call>'.split('').flatMap((letter) => model.tokens.encode(letter));
    const got = read(model, [...spelled, ...model.tokens.encode('{"name": "bash", "arguments": {}}')]);
    assert.deepEqual([got.calls.length, got.text.startsWith('<tool_call>')], [0, true]);
  });

  it('finds markers in the text where the vocabulary has no token for them', () => {
    const ids = textual.tokens.encode(`a <tool${call('{"name": "bash", "arguments": {"b": 1}}')} < b`);
    for (const chunk of [1, 3, ids.length]) {
      const got = read(textual, ids, chunk);
      assert.deepEqual([got.text, got.calls], ['a <tool < b', [{ name: 'bash', arguments: '{"b": 1}' }]]);
    }
  });

  it('accepts any ids in any chunks, and special tokens never become text', () => {
    const token = fc.oneof(
      fc.constantFrom(...syntax, '<|im_end|>', '<|im_start|>').map((text) => model.tokens.encode(text)),
      fc.constantFrom('{"name": "bash", "arguments": {}}', ' \n', 'word', '"', 'é').map((t) => model.tokens.encode(t)),
      fc.integer({ min: 0, max: 300 }).map((id) => [id]),
    );
    fc.assert(
      fc.property(fc.array(token, { maxLength: 30 }), fc.integer({ min: 2, max: 9 }), (parts, chunk) => {
        const ids = parts.flat();
        const whole = read(model, ids);
        assert.deepEqual(read(model, ids, chunk), whole);
        assert.ok(!/<\|im_/.test(whole.text + whole.reasoning));
      }),
      { numRuns: 300 },
    );
  });
});
