import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { createOnce } from '../store/files.ts';

const machineFile = z.object({ id: z.uuid() });

/** Reads the random id of a home, by which the store tells two machines of one name apart; creates it at first. */
export async function readMachineId(path: string): Promise<string> {
  await createOnce(path, `${JSON.stringify({ id: randomUUID() })}\n`, 0o644);
  return machineFile.parse(JSON.parse(await readFile(path, 'utf8'))).id;
}
