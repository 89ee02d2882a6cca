import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createProse } from '../../../../infra/kits/chat-tokens/tools/prose.ts';
import { userSeconds } from '../../../helpers/user-seconds.ts';

describe('the prose of a reply', () => {
  it('is the text without line breaks before it and whitespace after it, however it is cut', () => {
    const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', ' ', '\n', '\r', '\t'), maxLength: 4 }));
    fc.assert(
      fc.property(pieces, (parts) => {
        const prose = createProse();
        const shown = parts.map((part) => prose.push(part)).join('');
        assert.equal(
          shown,
          parts
            .join('')
            .replace(/^[\r\n]+/, '')
            .trimEnd(),
        );
      }),
    );
  });

  it('takes time in proportion to its length, also if it is blank', () => {
    const prose = createProse();
    prose.push('a');
    const seconds = userSeconds(() => {
      for (let token = 0; token < 16_000; token += 1) prose.push(' '.repeat(16));
    });
    assert.equal(prose.push('b').length, 16_000 * 16 + 1);
    // It takes some milliseconds; a blank that is looked at again with each token would take over ten seconds.
    assert.ok(seconds < 2, `took ${seconds} s`);
  });
});
