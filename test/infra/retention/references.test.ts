import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { digestsIn } from '../../../infra/retention/references/history.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

describe('the digests in a text', () => {
  it('do not keep the text in memory', () => {
    const digests: string[] = [];
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for (let index = 0; index < 400; index += 1) {
      const text = Buffer.alloc(100_000, `${index.toString(16).padStart(64, '0')} .`).toString('latin1');
      digests.push(...digestsIn(text));
    }
    collectGarbage();
    const grownBy = process.memoryUsage().heapUsed - before;
    assert.equal(digests.length, 400);
    assert.ok(grownBy < 4_000_000, `the heap grew by ${grownBy} bytes of the 40,000,000 in the texts`);
  });
});
