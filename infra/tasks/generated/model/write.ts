/** `node infra/tasks/generated/model/write.ts` writes the embedded policy's model directory. Run it when prompts or tasks changed. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { modelFiles } from './model-files.ts';

const directory = join(import.meta.dirname, '../temper-tiny');
for (const [name, text] of modelFiles()) await writeFile(join(directory, name), text);
