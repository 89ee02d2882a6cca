import { join, resolve } from 'node:path';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { readKeyFile } from '../../key-file.ts';
import { setting, text, wholeNumber } from '../../setting.ts';
import { LastingRefusal } from '../failure.ts';
import type { E2bSettings } from './settings.ts';

/** The environment variables of E2B sandboxes; part of the table in `infra/settings/environment.ts`. */
export const e2bVariables = {
  TEMPER_E2B_URL: setting(
    z
      .url({ protocol: /^https?$/, error: 'expected an http or https address' })
      .refine((value) => !value.includes('@'), { error: 'expected an address without credentials' })
      .optional(),
    "address of a server with E2B's API, for `e2b` sandboxes",
    "E2B's own cloud",
  ),
  TEMPER_E2B_SANDBOX_URL: setting(
    z.url({ protocol: /^https?$/, error: 'expected an http or https address' }).optional(),
    'address that passes requests on to the sandboxes of that server',
    'for `https://api.DOMAIN` each sandbox at DOMAIN; else `TEMPER_E2B_URL`',
  ),
  TEMPER_E2B_TEMPLATES: setting(
    text().optional(),
    'file with the templates of images, as a JSON object; an image that it does not name has one of its own name',
    '`e2b.json` in the home',
  ),
  TEMPER_E2B_HOURS: setting(
    wholeNumber(1, 10_000).default(24),
    'longest time in hours that the account lets a sandbox live; a rollout that may take longer is refused',
  ),
  E2B_API_KEY: setting(
    text().optional(),
    'key of the account for `e2b` sandboxes; temper never writes it to a file',
    '`E2B_API_KEY_FILE`, else no such sandboxes',
  ),
  E2B_API_KEY_FILE: setting(text().optional(), 'file with that key', 'none'),
};

type Values = z.output<z.ZodObject<typeof e2bVariables>> & { readonly TEMPER_CREATES: number };

/** Returns the settings that these variables have; null if they name no account. */
export function e2bFrom(env: Values, home: string): E2bSettings | null {
  const { E2B_API_KEY: key, E2B_API_KEY_FILE: file } = env;
  if (key !== undefined && file !== undefined) {
    throw new Error('expected E2B_API_KEY or E2B_API_KEY_FILE, got both; unset one of them');
  }
  if (key === undefined && file === undefined) return null;
  return {
    url: env.TEMPER_E2B_URL ?? null,
    sandboxUrl: env.TEMPER_E2B_SANDBOX_URL ?? null,
    apiKey: async () => key ?? readKey(file ?? ''),
    templates: resolve(env.TEMPER_E2B_TEMPLATES ?? join(home, 'e2b.json')),
    longestMs: env.TEMPER_E2B_HOURS * 3_600_000,
    creates: env.TEMPER_CREATES,
  };
}

async function readKey(file: string): Promise<string> {
  const content = await readKeyFile('E2B_API_KEY_FILE', file).catch((cause: unknown) => {
    throw new LastingRefusal(errorMessage(cause), { cause });
  });
  const key = content.trim();
  if (key === '') throw new LastingRefusal(`E2B_API_KEY_FILE: expected a key in ${file}, got an empty file`);
  return key;
}
