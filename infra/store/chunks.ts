import { z } from 'zod';
import type { Records } from './records.ts';

const chunkName = (name: string, chunk: number): string => `${name}-${chunk}`;
const items = z.array(z.unknown());

/** A long list as numbered records `<name>-0`, `<name>-1`, …: nobody has to hold all of it to write it. */
export function writeChunk(
  records: Records,
  key: string,
  name: string,
  chunk: number,
  values: readonly unknown[],
): Promise<void> {
  return records.write(key, chunkName(name, chunk), values);
}

/** One of its records. */
export async function readChunk(
  records: Records,
  key: string,
  name: string,
  chunk: number,
): Promise<readonly unknown[]> {
  return items.parse(await records.read(key, chunkName(name, chunk)));
}

/** All of them, in order. */
export async function readChunks(
  records: Records,
  key: string,
  name: string,
  chunks: number,
): Promise<readonly unknown[]> {
  const all: unknown[] = [];
  for (let chunk = 0; chunk < chunks; chunk += 1) all.push(...(await readChunk(records, key, name, chunk)));
  return all;
}
