import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { setting } from '../setting.ts';

/** The Hugging Face hub. */
export const hubUrl = 'https://huggingface.co';

/** A hub of data sets, and the account that reads them. */
export interface HubAccount {
  readonly url: string;
  /** A secret: it is sent to the hub in a header, and never kept, logged or passed on. Null without an account. */
  readonly token: string | null;
}

/**
 * The environment variables of the hub, which have the names that its own tools use; part of the table in
 * `infra/settings/environment.ts`.
 */
export const hubVariables = {
  HF_TOKEN: setting(
    z.string().optional(),
    'token of an account of the hub, for private and gated data sets; only commands that take a task set (`temper tasks`, `temper rollout`, `temper train`, `temper eval` and others) use it, and send it to the hub alone',
    'none',
  ),
  HF_ENDPOINT: setting(
    z
      .url({ protocol: /^https?$/, error: 'expected an http or https address' })
      .refine((value) => !value.includes('@'), { error: 'expected an address without credentials' })
      .optional(),
    'address of the hub that `hub:` in the address of a data set means: a mirror, or a hub of your own',
    `\`${hubUrl}\``,
  ),
};

/**
 * Reads the account from an environment. Throws TemperFailure InvalidInput if the token cannot be one; the message does
 * not hold it.
 */
export function hubAccountFrom({
  HF_TOKEN = '',
  HF_ENDPOINT,
}: Readonly<Record<string, string | undefined>>): HubAccount {
  const token = HF_TOKEN.trim();
  if (!/^[\x21-\x7e]*$/.test(token)) {
    throw new TemperFailure('InvalidInput', 'HF_TOKEN: expected a token, got spaces or other characters within it');
  }
  return { url: (HF_ENDPOINT ?? hubUrl).replace(/\/+$/, ''), token: token === '' ? null : token };
}
