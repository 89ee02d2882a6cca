import assert from 'node:assert/strict';
import { it } from 'node:test';
import { hashText } from '../../infra/hash.ts';
import { createRandom } from '../../infra/random.ts';

it('gives the published FNV-1a values of ASCII texts', () => {
  assert.deepEqual(['', 'a', 'foobar'].map(hashText), [0x811c9dc5, 0xe40c292c, 0xbf9cf968]);
});

it('draws the same numbers for the same seed in every version', () => {
  const random = createRandom('train/7/12');
  assert.deepEqual(
    [random.below(1000), random.below(1000), random.shuffle(['a', 'b', 'c', 'd']).join('')],
    [48, 365, 'bcad'],
  );
});
