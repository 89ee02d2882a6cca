import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Objects } from './objects.ts';
import { storedJson } from './stored-json.ts';
import { untilWritten } from './until-written.ts';

/** Named JSON documents of a run, such as `group-12` and `step-3`. Workflow history only has their names. */
export interface Records {
  /** Writes a record, replacing one of the same name as a whole. */
  write(runKey: string, name: string, value: unknown): Promise<void>;
  /** Writes a record unless it exists. Returns what it holds now, which another writer may have written. */
  writeOnce(runKey: string, name: string, value: unknown): Promise<unknown>;
  /**
   * Replaces a record by what `change` makes of it; null stands for a record that does not exist. It is called again if another
   * process has written the record meanwhile. The record stays as it is if `change` returns undefined.
   */
  update(runKey: string, name: string, change: (value: unknown) => unknown): Promise<void>;
  read(runKey: string, name: string): Promise<unknown>;
  /** Reads a record; null if it does not exist. */
  find(runKey: string, name: string): Promise<unknown>;
  /** Makes a record's time of change now, for records that retention removes when they are not used. */
  renew(runKey: string, name: string): Promise<void>;
  names(runKey: string): Promise<readonly string[]>;
}

const suffix = '.json';

/** Creates the records below a folder of the objects: `<folder>/<run key>/<name>.json`. */
export function createRecords(objects: Objects, folder?: string): Records {
  const folderOf = (runKey: string): string => [...(folder === undefined ? [] : [folder]), checked(runKey)].join('/');
  const keyOf = (runKey: string, name: string): string => `${folderOf(runKey)}/${checked(name)}${suffix}`;
  const parse = (key: string, bytes: Uint8Array): unknown => storedJson(`${objects.location}/${key}`, bytes);

  async function find(runKey: string, name: string): Promise<unknown> {
    const found = await objects.get(keyOf(runKey, name));
    return found === null ? null : parse(keyOf(runKey, name), found.bytes);
  }

  async function update(runKey: string, name: string, change: (value: unknown) => unknown): Promise<void> {
    const key = keyOf(runKey, name);
    await untilWritten(`${objects.location}/${key}`, async () => {
      const found = await objects.get(key);
      const value = change(found === null ? null : parse(key, found.bytes));
      if (value === undefined) return null;
      return (await objects.replace(key, encode(value), found?.version ?? null)) ?? undefined;
    });
  }

  return {
    async write(runKey, name, value) {
      // Most records are written once, and then one request is enough.
      if ((await objects.replace(keyOf(runKey, name), encode(value), null)) !== null) return;
      const text = JSON.stringify(value);
      await update(runKey, name, (before) => (JSON.stringify(before) === text ? undefined : value));
    },
    async writeOnce(runKey, name, value) {
      const key = keyOf(runKey, name);
      return untilWritten(`${objects.location}/${key}`, async () => {
        if ((await objects.replace(key, encode(value), null)) !== null) return value;
        // A record that was removed meanwhile is written again.
        return (await find(runKey, name)) ?? undefined;
      });
    },
    update,
    find,
    read: async (runKey, name) => {
      const value = await find(runKey, name);
      if (value === null) {
        throw new TemperFailure('BlobMissing', `run ${runKey} has no record ${name} in ${objects.location}`);
      }
      return value;
    },
    renew: async (runKey, name) => {
      await objects.renew(keyOf(runKey, name));
    },
    names: async (runKey) => {
      const prefix = `${folderOf(runKey)}/`;
      const names: string[] = [];
      for await (const { key } of objects.list(prefix.slice(0, -1))) {
        const name = key.slice(prefix.length);
        if (name.endsWith(suffix) && !name.includes('/')) names.push(name.slice(0, -suffix.length));
      }
      return names;
    },
  };
}

function checked(part: string): string {
  if (/^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,99}$/.test(part)) return part;
  throw new TemperFailure(
    'BlobMissing',
    `expected a record's name of letters, digits, '.', '_', '-', got ${JSON.stringify(part)}`,
  );
}

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
