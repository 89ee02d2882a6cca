import { readFile } from 'node:fs/promises';

/** Reads a file with a secret that a variable names. Throws an Error that names both. */
export async function readKeyFile(variable: string, path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new Error(
      `${variable}: expected a file that this account may read, got ${path} (${cause.code}); correct the path or its rights`,
      { cause },
    );
  });
}
