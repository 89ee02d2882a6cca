import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import type { Paths } from './paths.ts';

/** Identity of a stack: its label and its secret, created once by the first process that needs them. */
export interface Stack {
  /** Label of every sandbox of the stack; the reaper removes no sandbox with another label. */
  readonly id: string;
  /** Key that the agents' secrets are derived from; stored in a file with mode 0600, never in workflow history. */
  readonly key: Buffer;
}

const stackFile = z.strictObject({ id: z.uuid() });

/** Reads the identity of the stack on a home, creating the home and the identity if they do not exist. */
export async function openStack({ stackFile: path, stackKey }: Pick<Paths, 'stackFile' | 'stackKey'>): Promise<Stack> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  await createOnce(path, `${JSON.stringify({ id: randomUUID() })}\n`, 0o644);
  await createOnce(stackKey, randomBytes(32).toString('hex'), 0o600);
  const { id } = stackFile.parse(JSON.parse(await readFile(path, 'utf8')));
  return { id, key: Buffer.from(await readFile(stackKey, 'utf8'), 'hex') };
}

/** Creates a file with all its content, or keeps an existing one. `link` makes both cases atomic. */
async function createOnce(path: string, content: string, mode: number): Promise<void> {
  const known = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (known !== null) return known.close();
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${randomUUID()}`;
  await writeFile(temporary, content, { mode, flag: 'wx' });
  try {
    await link(temporary, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(temporary, { force: true });
  }
}
