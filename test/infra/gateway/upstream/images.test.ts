import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createFingerprints } from '../../../../infra/gateway/branches/fingerprint.ts';
import { withoutImages } from '../../../../infra/gateway/branches/turn-record.ts';
import { requestBody } from '../../../../infra/gateway/upstream/chat-wire.ts';
import type { Message } from '../../../../infra/kits/chat-tokens/index.ts';

const upstream = {
  name: 'large',
  url: 'https://example.com/v1',
  model: 'large',
  apiKey: null,
  maxTokensField: 'max_tokens',
  returnsReasoning: false,
  readsImages: true,
  namesSession: false,
} as const;
const sampling = { temperature: 1, topP: 1, topK: -1 };
const a = { url: 'data:image/png;base64,AAAA' };
const call = (id: string) => ({ id, name: 'look', arguments: '{}' });
const messages: readonly Message[] = [
  { role: 'user', text: 'Look: [image]', parts: ['Look:', a] },
  { role: 'assistant', text: '', reasoning: '', toolCalls: [call('c1'), call('c2')] },
  { role: 'tool', callId: 'c1', name: null, text: '[image]', parts: [a] },
  { role: 'tool', callId: 'c2', name: null, text: 'none' },
  { role: 'user', text: 'Well?' },
];
const wire = (readsImages: boolean) => {
  const call = { conversation: { messages, tools: [] }, sampling, maxTokens: 5 };
  return JSON.parse(JSON.stringify(requestBody({ ...upstream, readsImages }, call))).messages;
};

describe('the images of a conversation', () => {
  it('reach a model that reads them, those of tool results after the last result', () => {
    const picture = { type: 'image_url', image_url: a };
    const [asked, , first, second, shown, ...rest] = wire(true);
    assert.deepEqual(asked, { role: 'user', content: [{ type: 'text', text: 'Look:' }, picture] });
    assert.deepEqual([first.content, second.content], ['[image]', 'none']);
    assert.deepEqual(shown.content, [{ type: 'text', text: 'The images of the result of call c1:' }, picture]);
    assert.deepEqual(rest, [{ role: 'user', content: 'Well?' }]);
  });

  it('are notes for one that does not', () => {
    assert.deepEqual(
      wire(false).map(({ content }: { content: unknown }) => content),
      ['Look: [image]', null, '[image]', 'none', 'Well?'],
    );
  });

  it('tell two conversations apart, and are not journaled', () => {
    const fingerprintOf = createFingerprints();
    const with_ = (url: string): readonly Message[] => [{ role: 'user', text: 'x', parts: ['x', { url }] }];
    const requests = ['u1', 'u2', 'u1'].map((url) => fingerprintOf({ messages: with_(url), tools: [] }).request);
    assert.equal(new Set(requests).size, 2);
    assert.deepEqual(withoutImages(with_('u1')), [{ role: 'user', text: 'x' }]);
  });
});
