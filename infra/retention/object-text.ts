import type { Objects } from '../store/objects.ts';

/** Reads an object as text in which digests can be found; empty if it is gone by now. */
export async function textOf({ objects }: { readonly objects: Objects }, key: string): Promise<string> {
  const found = await objects.get(key);
  return found === null ? '' : Buffer.from(found.bytes).toString('latin1');
}
