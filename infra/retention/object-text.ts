import type { Objects } from '../store/objects.ts';

/**
 * Reads the lines of an object, each as text in which digests can be found; none if it is gone by now. A day of a large fleet may
 * be longer than any string of V8, which takes up to 512 MB.
 */
export async function linesOf({ objects }: { readonly objects: Objects }, key: string): Promise<Iterable<string>> {
  const found = await objects.get(key);
  return found === null ? [] : linesIn(Buffer.from(found.bytes.buffer, found.bytes.byteOffset, found.bytes.byteLength));
}

function* linesIn(bytes: Buffer): Iterable<string> {
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(lineEnd, from);
    const to = end < 0 ? bytes.length : end;
    yield bytes.toString('latin1', from, to);
    from = to + 1;
  }
}

const lineEnd = 0x0a;

/** Reads an object as text in which digests can be found; empty if it is gone by now. */
export async function textOf({ objects }: { readonly objects: Objects }, key: string): Promise<string> {
  const found = await objects.get(key);
  return found === null ? '' : Buffer.from(found.bytes).toString('latin1');
}
