import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { createScrubber } from '../../../infra/grading/snapshot/scrub.ts';
import { collect } from '../../../infra/sandbox/files.ts';

const key = 'kQ3vS-0a_9xYzTfB27hLmN';
/** The same session's code, derived from another key of the stack. */
const earlier = 'Zt7-pQ_w2LkD4nX0eRsVbJ';
const session = '0197-rollout.1';
const { content, text } = createScrubber([`${session}~${key}`, `${session}~${earlier}`]);
/** Characters of the key that no form may show. A base64 digit has bits of two bytes, so single ones remain at the ends. */
const window = 4;

async function scrub(line: string, chunk: number): Promise<string> {
  const bytes = Buffer.from(line);
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunk) }, (_, index) =>
    bytes.subarray(index * chunk, (index + 1) * chunk),
  );
  return (await collect(Readable.from(content(Readable.from(chunks))))).toString();
}

describe('the scrubber of a secret', () => {
  it('overwrites the secret in each form, wherever chunks are cut', async () => {
    const encodings = ['latin1', 'hex', 'base64', 'base64url'] as const;
    for (const encoding of encodings) {
      for (const before of ['', 'a', 'ab', `${session}~`]) {
        const line = Buffer.from(`${before}${key} and more`).toString(encoding);
        for (const chunk of [1, 7, 4096]) {
          const scrubbed = await scrub(line, chunk);
          assert.equal(scrubbed.length, line.length);
          const shown = Buffer.from(scrubbed, encoding).toString('latin1');
          for (let at = 0; at + window <= key.length; at += 1) {
            assert.ok(!shown.includes(key.slice(at, at + window)), `${encoding} in chunks of ${chunk}: ${shown}`);
          }
          assert.match(shown, / and more$/);
        }
      }
    }
  });

  it('leaves everything else, the id of the session included, and treats names alike', async () => {
    const line = `token=${session}~${key};`;
    const expected = `token=${session}~${'0'.repeat(key.length)};`;
    assert.deepEqual([await scrub(line, 5), text(line)], [expected, expected]);
    assert.equal(text(`a ${earlier} b`), `a ${'0'.repeat(earlier.length)} b`);
    const plain = `before ${session} after`;
    assert.equal(await scrub(plain, 3), plain);
  });
});
