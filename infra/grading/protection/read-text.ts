import { FileRefused, isFileRefused } from '../../sandbox/failure.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';

/** The text of a file; null if there is no file, undefined if it is not a regular file or too large. */
export type Content = string | null | undefined;

/** No configuration file is larger. */
const fileBytes = 2 ** 20;

/** Reads a configuration file in a sandbox. */
export async function readText(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<Content> {
  try {
    return (await sandbox.readFile(path, fileBytes, signal)).toString('utf8');
  } catch (error) {
    if (isFileRefused(error, 'missing')) return null;
    if (error instanceof FileRefused) return undefined;
    throw error;
  }
}
