import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { modelFiles } from './model-files.ts';

/**
 * Writes the embedded policy's model directory. Run `node test/recipe/tiny-model/write.ts` after a change of mini's prompts or
 * of the generated tasks; a test compares the directory with its sources.
 */
const directory = join(import.meta.dirname, '../../../infra/tasks/generated/temper-tiny');
for (const [name, text] of modelFiles()) await writeFile(join(directory, name), text);
