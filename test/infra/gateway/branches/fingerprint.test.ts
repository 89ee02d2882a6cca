import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { createFingerprints, type Fingerprint } from '../../../../infra/gateway/branches/fingerprint.ts';
import type { Message, Tool } from '../../../../infra/kits/chat-tokens/index.ts';

const text = fc.constantFrom('', 'a', ' a\n', 'é 🦊');
const toolCalls = fc.array(
  fc.record({
    id: fc.constantFrom('1', '2'),
    name: fc.constantFrom('bash', 'read'),
    arguments: fc.constantFrom('{"a":1,"b":2}', '{"b": 2, "a": 1.0}', '{', '{}'),
  }),
  { maxLength: 2 },
);
const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({ role: fc.constantFrom('system' as const, 'user' as const), text }),
  fc.record({ role: fc.constant('assistant' as const), text, reasoning: text, toolCalls }),
  fc.record({ role: fc.constant('tool' as const), callId: text, name: fc.constant(null), text }),
);
const tools = fc.constantFrom<readonly Tool[]>([], [{ name: 'bash', description: null, parameters: null }]);
/** A conversation that begins with some messages of an earlier one and then has others. */
const step = fc.record({
  from: fc.nat(30),
  kept: fc.nat(12),
  again: fc.boolean(),
  added: fc.array(message, { maxLength: 4 }),
  tools,
});

const plain = ({ withReply, ...digests }: Fingerprint) => ({
  ...digests,
  replied: withReply({ role: 'assistant', text: 'Done.', reasoning: 'hm', toolCalls: [] }),
});

it('a fingerprint does not depend on the conversations fingerprinted before', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 20 }), (steps) => {
      const fingerprintOf = createFingerprints();
      const told: (readonly Message[])[] = [];
      for (const { from, kept, again, added, tools } of steps) {
        const base = told[told.length === 0 ? -1 : from % told.length] ?? [];
        const begun = again ? base : base.slice(0, kept);
        const messages = [...structuredClone(begun), ...added];
        const conversation = { messages, tools };
        assert.deepEqual(plain(fingerprintOf(conversation)), plain(createFingerprints()(conversation)));
        told.push(messages);
      }
    }),
    { numRuns: 300 },
  );
});
