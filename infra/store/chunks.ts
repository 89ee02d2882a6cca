import { z } from 'zod';
import type { Records } from './records.ts';

/** A long list, kept as numbered records `<name>-0`, `<name>-1`, … of a run, so that it never has to be in memory as a whole. */
export interface ChunkedList {
  readonly runKey: string;
  readonly name: string;
}

const chunkName = (name: string, chunk: number): string => `${name}-${chunk}`;
const items = z.array(z.unknown());

export function writeChunk(
  records: Records,
  { runKey, name }: ChunkedList,
  chunk: number,
  values: readonly unknown[],
): Promise<void> {
  return records.write(runKey, chunkName(name, chunk), values);
}

export async function readChunk(
  records: Records,
  { runKey, name }: ChunkedList,
  chunk: number,
): Promise<readonly unknown[]> {
  return items.parse(await records.read(runKey, chunkName(name, chunk)));
}

/** Reads all chunks of a list, in order. */
export async function readChunks(records: Records, list: ChunkedList, chunks: number): Promise<readonly unknown[]> {
  const all: unknown[] = [];
  for (let chunk = 0; chunk < chunks; chunk += 1) all.push(...(await readChunk(records, list, chunk)));
  return all;
}
