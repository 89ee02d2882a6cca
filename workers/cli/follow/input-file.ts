import { readFile } from 'node:fs/promises';
import { UsageError } from '../text/errors.ts';

/** Options that were given: those that were not must not hide what an input file says. */
export function defined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** A workflow's input, from a file. */
export async function readInput(path: string): Promise<Record<string, unknown>> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`--input: expected a readable JSON file, got ${path} (${error.code})`);
  });
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch (error) {
    throw new UsageError(`--input: expected JSON in ${path}, got: ${error instanceof Error ? error.message : error}`);
  }
  throw new UsageError(`--input: expected a JSON object in ${path}, for example {"steps": 30}`);
}
