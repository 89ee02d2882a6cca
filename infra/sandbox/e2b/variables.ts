import { z } from 'zod';
import { setting, wholeNumber } from '../../setting.ts';

/** The environment variables of E2B sandboxes; part of the table in `infra/settings.ts`. */
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
    z.string().min(1).optional(),
    'file with the templates of images, as a JSON object; an image that it does not name has one of its own name',
    '`e2b.json` in the home',
  ),
  TEMPER_E2B_HOURS: setting(
    wholeNumber(1, 10_000).default(24),
    'longest time in hours that the account lets a sandbox live; a rollout that may take longer is refused',
  ),
  E2B_API_KEY: setting(
    z.string().min(1).optional(),
    'key of the account for `e2b` sandboxes; temper never writes it to a file',
    '`E2B_API_KEY_FILE`, else no such sandboxes',
  ),
  E2B_API_KEY_FILE: setting(z.string().min(1).optional(), 'file with that key', 'none'),
};
