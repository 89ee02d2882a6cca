import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { TemperFailure } from '../workflows/contracts/failures.ts';

/** The name of a variable that holds a secret; an operator's file itself never holds one. */
export const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: 'expected the name of a variable in the environment' });

/**
 * Reads a JSON file that an operator writes; one that does not exist counts as an empty object. `what` says what it should
 * be. Throws InvalidInput, which names the file, the fields and what was expected.
 */
export async function readOperatorFile<Shape extends z.ZodType>(
  path: string,
  what: string,
  shape: Shape,
): Promise<z.output<Shape>> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}';
    throw invalid(`${path}: expected a file that can be read: ${error.message}`);
  });
  const parsed = shape.safeParse(jsonOf(path, what, text));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path: at, message }) => `${at.join('.') || 'file'}: ${message}`);
  throw invalid(`${path}: ${problems.join('; ')}`);
}

/** Returns the secret in a variable that the field `at` of an operator's file names. Throws InvalidInput if it has none. */
export function secretFrom(
  environment: Readonly<Record<string, string | undefined>>,
  variable: string,
  at: string,
): string {
  const secret = environment[variable]?.trim();
  if (secret !== undefined && secret !== '') return secret;
  throw invalid(
    `${at}: expected ${variable} in the environment of the stack, got nothing; set it where \`temper up\` or the process starts, and restart that`,
  );
}

function jsonOf(path: string, what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message would quote the file, which may hold secrets by mistake.
    throw invalid(`${path}: expected ${what}, got text that is not valid JSON; correct the file`);
  }
}

const invalid = (message: string): TemperFailure => new TemperFailure('InvalidInput', message);
