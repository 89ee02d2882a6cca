import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { createTokenLedger } from '../../../../infra/gateway/branches/token-ledger.ts';
import { createReplyDecoder } from '../../../../infra/gateway/turns/decode-reply.ts';
import { bash } from '../../../helpers/models/read-reply.ts';
import { tinyFamily } from '../../../helpers/models/tiny-families.ts';

it('a call keeps its sampled id, unless two calls of one reply have the same id', async () => {
  const template = readFileSync(join(import.meta.dirname, '../../../fixtures/families/kimi.jinja'), 'utf8');
  await using tiny = await tinyFamily('kimi', template);
  const { model } = tiny;
  const plan = createTokenLedger(model).plan({ messages: [{ role: 'user', text: 'Go.' }], tools: [bash] });
  const call = (id: string): string =>
    `<|tool_call_begin|>${id}<|tool_call_argument_begin|>{"command": "ls"}<|tool_call_end|>`;
  const idsOf = (said: string): readonly string[] => {
    const decoder = createReplyDecoder({ plan, model, tools: [bash] }, () => {});
    decoder.push(model.tokens.encode(`${said}<|im_end|>`));
    return decoder.finish().toolCalls.map(({ id }) => id);
  };
  assert.deepEqual(idsOf(call('functions.bash:3')), ['functions.bash:3']);
  const [first, second] = idsOf(call('functions.bash:0') + call('functions.bash:0'));
  assert.equal(first, 'functions.bash:0');
  assert.match(second ?? '', /^call_[0-9a-f]+1$/);
});
