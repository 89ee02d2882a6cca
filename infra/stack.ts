import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import type { Config } from './config.ts';

/** Identity of a stack: its labels and secrets. Made once, by whichever process comes first. */
export interface Stack {
  /** Labels every sandbox; the reaper touches no other's. */
  readonly id: string;
  /** Key from which the agents' secrets are derived; in a 0600 file, never in history. */
  readonly key: Buffer;
}

const stackFile = z.strictObject({ id: z.uuid() });

export async function openStack(config: Config): Promise<Stack> {
  const { stackFile: path, stackKey } = config.paths;
  await mkdir(config.home, { recursive: true, mode: 0o755 });
  await createOnce(path, `${JSON.stringify({ id: randomUUID() })}\n`, 0o644);
  await createOnce(stackKey, randomBytes(32).toString('hex'), 0o600);
  const { id } = stackFile.parse(JSON.parse(await readFile(path, 'utf8')));
  return { id, key: Buffer.from(await readFile(stackKey, 'utf8'), 'hex') };
}

/** Creates a file with its whole content, or leaves the one that is there: `link` does both in one step. */
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
