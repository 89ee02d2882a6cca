import { z } from 'zod';
import type { Records } from './records.ts';

const chunkName = (name: string, chunk: number): string => `${name}-${chunk}`;
const items = z.array(z.unknown());

/** Writes one part of a long list. The parts are numbered records `<name>-0`, `<name>-1`, …, so the list never has to be in memory. */
export function writeChunk(
  records: Records,
  key: string,
  name: string,
  chunk: number,
  values: readonly unknown[],
): Promise<void> {
  return records.write(key, chunkName(name, chunk), values);
}

/** Reads one part of a list. */
export async function readChunk(
  records: Records,
  key: string,
  name: string,
  chunk: number,
): Promise<readonly unknown[]> {
  return items.parse(await records.read(key, chunkName(name, chunk)));
}

/** Reads all parts of a list, in order. */
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
