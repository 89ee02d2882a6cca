import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { modelFiles } from '../../../recipe/tiny-model/model-files.ts';

const directory = join(import.meta.dirname, '../../../../infra/tasks/generated/temper-tiny');

it('ships the model directory that the current prompts and generated tasks give', async () => {
  for (const [name, text] of modelFiles()) assert.equal(await readFile(join(directory, name), 'utf8'), text, name);
});
