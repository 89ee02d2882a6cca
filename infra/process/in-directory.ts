import { dirname } from 'node:path';
import { makeDirectory } from './durable-directory.ts';

/** A path that can never exist, such as one below a dangling link, fails with the same code as a directory that was removed. */
const mostTries = 100;

/**
 * Creates the directory of `path`, then calls `create`, which makes something there. Another process may remove the directory
 * while it is empty; then both are repeated.
 */
export async function inDirectory<Result>(path: string, create: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      await makeDirectory(dirname(path));
      return await create();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || tries === mostTries) throw error;
    }
  }
}
