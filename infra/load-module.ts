import { createRequire } from 'node:module';
import { isAbsolute, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { errorMessage } from '../workflows/contracts/error-message.ts';

/** Imports the default export of a module that the operator names: an absolute path, or a package. Throws an Error that says what is wrong. */
export async function loadModule(from: string, expected: string): Promise<unknown> {
  const imported: unknown = await import(locate(from)).catch((cause: unknown) => {
    throw new Error(
      `it cannot be loaded (${errorMessage(cause)}); name a module by its path, or a package that is installed in the working directory or beside temper`,
    );
  });
  const parsed = z.looseObject({ default: z.unknown().optional() }).parse(imported);
  if (parsed.default === undefined) throw new Error(`expected a default export with ${expected}, got none`);
  return parsed.default;
}

/** Finds a package from the working directory, and else lets Node find it from here. */
function locate(from: string): string {
  if (isAbsolute(from)) return pathToFileURL(from).href;
  try {
    return pathToFileURL(createRequire(join(process.cwd(), 'package.json')).resolve(from)).href;
  } catch {
    return from;
  }
}
