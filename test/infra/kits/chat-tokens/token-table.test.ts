import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createTokenTable } from '../../../../infra/kits/chat-tokens/token-table.ts';
import { writeTinyModel } from '../../../helpers/models/tiny-model.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Creates a table whose tokenizer splits a text into words first, as those of most models do. */
async function createWordTable() {
  await using model = await writeTinyModel();
  const tokenizer = JSON.parse(await readFile(join(model.dir, 'tokenizer.json'), 'utf8'));
  const split = { type: 'Split', pattern: { Regex: ' ?[^ ]+' }, behavior: 'Isolated', invert: false };
  const pretokenizers = [split, tokenizer.pre_tokenizer];
  return createTokenTable({ ...tokenizer, pre_tokenizer: { type: 'Sequence', pretokenizers } }, {});
}

it('a table keeps words of the texts that it has encoded, and not the texts', async () => {
  const table = await createWordTable();
  const texts = 20;
  const filler = ' abcdefghijkl'.repeat(16_000);
  table.encode(filler);
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let number = 0; number < texts; number += 1) {
    assert.ok(table.encode(`identifier-number-${number}${filler}`).length > filler.length);
  }
  collectGarbage();
  const kept = process.memoryUsage().heapUsed - before;
  assert.ok(kept < 10 * filler.length, `${kept} bytes are kept of ${texts} texts of ${filler.length}`);
});
