import { z } from 'zod';
import type { ReadableStack } from './stack-client.ts';

const packRecord = z.looseObject({ from: z.string() });

/** Returns the name under which a user knows a set: where a packed one came from, and any other set's address. */
export async function setName({ shared }: Pick<ReadableStack, 'shared'>, address: string): Promise<string> {
  const digest = /^blob:([0-9a-f]{64})$/.exec(address)?.[1];
  if (digest === undefined) return address;
  const found = packRecord.safeParse(await shared.common.find('packs', digest));
  return found.success ? `${found.data.from}, packed as blob:${digest.slice(0, 8)}` : address;
}
