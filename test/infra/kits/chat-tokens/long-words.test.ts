import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { limitWords, partsOf } from '../../../../infra/kits/chat-tokens/long-words.ts';

describe('a very long word', () => {
  it('is encoded in parts, and others as they are', () => {
    const lengths: number[] = [];
    const model = {
      encode(words: string[]): string[] {
        lengths.push(...words.map(({ length }) => length));
        return words;
      },
    };
    limitWords(model);
    assert.equal(model.encode(['a'.repeat(100_000), 'b']).join(''), `${'a'.repeat(100_000)}b`);
    assert.deepEqual(lengths, [...Array(6).fill(16_384), 100_000 - 6 * 16_384, 1]);
  });

  it('is split before a blank, if there is one', () => {
    const text = '\u2581\u2581word'.repeat(10_000);
    const parts = partsOf(text);
    assert.equal(parts.join(''), text);
    for (const part of parts) assert.match(part, /^\u2581\u2581word/);
  });

  it('is never split within a character', () => {
    const text = `a${'😀'.repeat(20_000)}`;
    const parts = partsOf(text);
    assert.equal(parts.join(''), text);
    for (const part of parts) assert.ok(part.isWellFormed());
  });
});
