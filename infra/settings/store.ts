import type { z } from 'zod';
import { readKeyFile } from '../key-file.ts';
import { parseKeys, type StackKeys } from '../stack.ts';
import { parseS3Address } from '../store/s3/place.ts';
import type { StorePlace } from '../store/shared-state.ts';
import type { environment } from './environment.ts';

// The part of the environment that says where the stack's shared state and its keys are.

/** The place of the shared state: the bucket of `TEMPER_STORE`, else the home. */
export function storeFrom(
  env: z.output<typeof environment>,
  home: string,
  { AWS_REGION, AWS_DEFAULT_REGION }: Readonly<Record<string, string | undefined>>,
): StorePlace {
  const address = parseS3Address(env.TEMPER_STORE ?? '');
  if (address === null) return { kind: 'directory', root: home };
  const endpoint = env.TEMPER_STORE_ENDPOINT ?? null;
  // The client reads AWS_REGION alone, and AWS's own commands AWS_DEFAULT_REGION, too. A server of one's own ignores the region,
  // but requests are signed with one.
  const fallback = AWS_REGION ?? AWS_DEFAULT_REGION ?? (endpoint === null ? null : 'us-east-1');
  return {
    kind: 's3',
    ...address,
    endpoint,
    region: env.TEMPER_STORE_REGION ?? fallback,
    pathStyle: (env.TEMPER_STORE_PATH_STYLE ?? (endpoint === null ? 'off' : 'on')) === 'on',
  };
}

/** Returns the reader of the keys in a variable or in a file; null if neither is named. */
export function stackKeysFrom({
  TEMPER_STACK_KEY: text,
  TEMPER_STACK_KEY_FILE: file,
}: z.output<typeof environment>): (() => Promise<StackKeys>) | null {
  if (text !== undefined && file !== undefined) {
    throw new Error('expected TEMPER_STACK_KEY or TEMPER_STACK_KEY_FILE, got both; unset one of them');
  }
  if (text !== undefined) return async () => parseKeys(text, 'TEMPER_STACK_KEY');
  return file === undefined ? null : async () => parseKeys(await readKeyFile('TEMPER_STACK_KEY_FILE', file), file);
}
