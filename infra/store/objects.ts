/**
 * Named bytes that the processes of a stack share, in a directory or in a bucket. A key is a path of folders and a name, such
 * as `runs/<key>/step-3.json`. Every operation may be repeated. Throws TemperFailure StoreUnavailable or DiskFull.
 */
export interface Objects {
  /** The place of the objects, for messages. */
  readonly location: string;
  /** Reads an object; null if there is none. */
  get(key: string): Promise<FoundObject | null>;
  stat(key: string): Promise<ObjectFacts | null>;
  /** Reads at most that many bytes from the beginning of an object; null if there is none. */
  peek(key: string, most: number): Promise<Uint8Array | null>;
  /**
   * Stores bytes that never change under their key, or renews the object that holds them: its time of change is then so recent
   * that retention leaves it.
   */
  putOnce(key: string, bytes: Uint8Array): Promise<void>;
  /**
   * Replaces an object as a whole if it still has that version; null: if there is none. Returns the new version, or null if
   * another writer came first.
   */
  replace(key: string, bytes: Uint8Array, version: string | null): Promise<string | null>;
  /** Renews an object, so that retention leaves it. Returns whether it exists. */
  renew(key: string): Promise<boolean>;
  /** Lists the objects below a folder, at any depth; those of one folder follow each other. Reads a page at a time. */
  list(folder: string): AsyncIterable<ListedObject>;
  /** Removes an object, unless it was changed or renewed at that time or later. Returns whether it is gone. */
  remove(key: string, unusedSinceMs?: number): Promise<boolean>;
  /** Lists what killed processes left below these folders. */
  leftovers(folders: readonly string[]): AsyncIterable<Leftover>;
}

/** An unfinished write, upload or removal. */
export interface Leftover {
  readonly name: string;
  readonly kind: 'write' | 'removal';
  /** The bytes that it takes, as far as they are known. */
  readonly size: number;
  readonly changedAtMs: number;
  /**
   * Removes what is left of a write. Completes a removal, or undoes it if the object was used at that time or later. Returns
   * whether it is gone.
   */
  settle(unusedSinceMs: number): Promise<boolean>;
}

export interface FoundObject {
  readonly bytes: Uint8Array;
  /** Differs from that of other bytes, and from that before the object was last renewed. */
  readonly version: string;
}

export interface ObjectFacts {
  readonly size: number;
  /** Milliseconds since the epoch at which the object was last written or renewed. */
  readonly changedAtMs: number;
}

export interface ListedObject extends ObjectFacts {
  readonly key: string;
}

/** The folders of what the processes of a stack share, except the passing notes of hosts. */
export const sharedFolders = [
  'store',
  'runs',
  'rollouts',
  'starts',
  'verdicts',
  'quarantine',
  'packs',
  'trainer',
  'outcomes',
] as const;

/** Returns the key, which must be safe as a path below a directory. */
export function checkedKey(key: string): string {
  const parts = key.split('/');
  if (parts.every((part) => /^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,199}$/.test(part))) return key;
  throw new Error(`expected a key of letters, digits, '.', '_' and '-' in folders, got ${JSON.stringify(key)}`);
}
