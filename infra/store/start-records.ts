import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { shortKey } from '../../workflows/contracts/ids.ts';
import { type StartRecord, startFormat, startRecord } from '../../workflows/contracts/start-record.ts';
import type { ListedObject, Objects } from './objects.ts';
import { folderOfId } from './rollout-records.ts';
import { storedJson } from './stored-json.ts';

/** The folder of the records of starts. */
export const startFolder = 'starts';
const suffix = '.json';

/**
 * The records of the runs, sweeps, regrades and groups by hand that were started, one small object each, written once. Throws
 * TemperFailure StoreUnavailable or DiskFull, and BlobMissing for a record that can't be read.
 */
export interface StartRecords {
  write(start: Omit<StartRecord, 'format'>): Promise<void>;
  /** Finds the newest start with a workflow id, or the one whose key ends so; null if there is none. */
  find(id: string, ofKey?: string): Promise<StartRecord | null>;
}

/** Creates the records of starts: `starts/<2 hex digits>/<id>/<key>.json`, so that one listing finds those of an id. */
export function createStartRecords(objects: Objects): StartRecords {
  return {
    async write(start) {
      const bytes = new TextEncoder().encode(JSON.stringify({ format: startFormat, ...start }));
      await objects.replace(`${folderOfId(startFolder, start.id)}/${start.key}${suffix}`, bytes, null);
    },
    async find(id, ofKey) {
      const found: ListedObject[] = [];
      for await (const one of objects.list(folderOfId(startFolder, id)))
        if (ofKey === undefined || shortKey(keyOfStart(one.key)) === ofKey) found.push(one);
      const [newest] = found.toSorted((a, b) => b.changedAtMs - a.changedAtMs);
      const read = newest === undefined ? null : await objects.get(newest.key);
      return read === null || newest === undefined ? null : parse(`${objects.location}/${newest.key}`, read.bytes);
    },
  };
}

/** Returns the key of the run, sweep, regrade or group that a record of a start names. */
export const keyOfStart = (recordKey: string): string =>
  recordKey.slice(recordKey.lastIndexOf('/') + 1, -suffix.length);

function parse(place: string, bytes: Uint8Array): StartRecord {
  const parsed = startRecord.safeParse(storedJson(place, bytes));
  if (parsed.success) return parsed.data;
  throw new TemperFailure(
    'BlobMissing',
    `${place}: expected the record of a start of format ${startFormat}, got another value; read it with the version of temper that wrote it`,
  );
}
