import { z } from 'zod';
import type { ReadableStack } from './stack-client.ts';

const start = z.looseObject({ tasks: z.string() });
const packRecord = z.looseObject({ from: z.string() });

/** The most characters of a place: the server takes no summary of a workflow with more than 400 bytes. */
const shownCharacters = 100;

/** Returns the name under which a user knows a set: where a packed one came from, and any other set's address. */
export async function setName({ shared }: Pick<ReadableStack, 'shared'>, address: string): Promise<string> {
  const digest = /^blob:([0-9a-f]{64})$/.exec(address)?.[1];
  if (digest === undefined) return address;
  const found = packRecord.safeParse(await shared.common.find('packs', digest));
  if (!found.success) return address;
  const { from } = found.data;
  const shown = from.length <= shownCharacters ? from : `…${from.slice(1 - shownCharacters)}`;
  return `${shown}, packed as blob:${digest.slice(0, 8)}`;
}

/** Returns the name of the set of a run or sweep, by the record of its start; null if it has not begun. */
export async function startedSet(stack: Pick<ReadableStack, 'shared'>, id: string, ofKey?: string) {
  const started = start.safeParse((await stack.shared.starts.find(id, ofKey))?.input);
  return started.success ? setName(stack, started.data.tasks) : null;
}

/** Returns the name under which a user knows a task: the id of a packed one, and any other task's address. */
export const taskName = (address: string): string => /^blob:[0-9a-f]{64}#(.+)$/s.exec(address)?.[1] ?? address;
