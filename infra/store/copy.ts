import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { sha256 } from './files.ts';
import { type ListedObject, type Objects, sharedFolders } from './objects.ts';

const atOnce = 16;

/** The progress of a copy. */
export interface Copied {
  /** The number of objects that the destination has now, and their bytes. */
  readonly objects: number;
  readonly bytes: number;
  /** The number of those that it did not have before. */
  readonly sent: number;
}

/**
 * Copies all shared objects to another place, and reads each one back: a blob must have its digest on both sides, and every
 * other object the same bytes. Objects that the destination has already are compared, and not sent again, so that a copy that
 * was interrupted can be repeated. Refuses to replace a record that was changed in the destination later than in the source: the
 * stack has worked there. Nothing may write to the source meanwhile.
 */
export async function copyObjects(
  from: Objects,
  to: Objects,
  { onProgress, signal }: { onProgress(copied: Copied): void; readonly signal: AbortSignal },
): Promise<Copied> {
  let copied: Copied = { objects: 0, bytes: 0, sent: 0 };
  const all = listAll(from);
  const failed = new AbortController();
  const ended = AbortSignal.any([signal, failed.signal]);
  const copyNext = async (): Promise<void> => {
    for (;;) {
      const next = await all.next();
      if (next.done === true) return;
      ended.throwIfAborted();
      const { key, size } = next.value;
      const isNew = await copyOne(from, to, key);
      const { objects, bytes, sent } = copied;
      copied = { objects: objects + 1, bytes: bytes + size, sent: sent + (isNew ? 1 : 0) };
      onProgress(copied);
    }
  };
  const lanes = Array.from({ length: atOnce }, () => copyNext().catch((error: unknown) => failed.abort(error)));
  // Objects that are being copied would be in the way of the next copy, so all of them end first.
  await Promise.all(lanes);
  failed.signal.throwIfAborted();
  return copied;
}

async function* listAll(from: Objects): AsyncGenerator<ListedObject> {
  for (const folder of sharedFolders) yield* from.list(folder);
}

/** Copies one object unless the destination has the same. Returns whether it was sent. */
async function copyOne(from: Objects, to: Objects, key: string): Promise<boolean> {
  const source = await from.get(key);
  if (source === null) throw changed(from, key);
  const digest = /^store\/[0-9a-f]{2}\/([0-9a-f]{64})$/.exec(key)?.[1];
  if (digest !== undefined && sha256(source.bytes) !== digest) {
    throw new TemperFailure(
      'BlobMissing',
      `the blob ${digest} has other content; remove ${key} from ${from.location} and copy again`,
    );
  }
  const before = await to.get(key);
  if (before !== null && Buffer.compare(before.bytes, source.bytes) === 0) return false;
  if (before !== null && digest === undefined) await requireOlder(from, to, key);
  if ((await to.replace(key, source.bytes, before?.version ?? null)) === null) throw changed(to, key);
  const after = await to.get(key);
  if (after === null || Buffer.compare(after.bytes, source.bytes) !== 0) throw changed(to, key);
  return true;
}

async function requireOlder(from: Objects, to: Objects, key: string): Promise<void> {
  const [source, destination] = await Promise.all([from.stat(key), to.stat(key)]);
  if (source === null) throw changed(from, key);
  if (destination === null || destination.changedAtMs <= source.changedAtMs) return;
  const [there, here] = [destination, source].map(({ changedAtMs }) => new Date(changedAtMs).toISOString());
  throw new TemperFailure(
    'InvalidInput',
    `${key} in ${to.location} was changed at ${there}, and in ${from.location} at ${here}: the stack has worked on ${to.location} ` +
      'since the last copy, or the two clocks differ, and the older state would replace the newer one; use the destination as it is, ' +
      'or copy to another prefix',
  );
}

const changed = ({ location }: Objects, key: string): TemperFailure =>
  new TemperFailure(
    'StoreUnavailable',
    `${key} in ${location} was changed by another process during the copy; stop the stack, and copy again`,
  );
