import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { placeOfRollout, shortKey } from '../../workflows/contracts/ids.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import {
  type RegradeRecord,
  type RolloutRecord,
  recordFormat,
  regradeRecord,
  rolloutRecord,
} from '../../workflows/contracts/rollout-record.ts';
import { sha256 } from './files.ts';
import type { ListedObject, Objects } from './objects.ts';

/** A rollout by its workflow id and its key, its first execution run id; without a key, the newest one of that id. */
export interface RolloutName {
  readonly workflowId: string;
  readonly rollout?: string | undefined;
}

/**
 * The records of rollouts that have ended, one object each, written once. Throws TemperFailure StoreUnavailable or DiskFull, and
 * BlobMissing for a record that can't be read.
 */
export interface RolloutRecords {
  /** Writes a record unless the rollout has one. Returns the record that it has now, which another writer may have written. */
  write(record: RolloutRecord): Promise<RolloutRecord>;
  /** Finds the record of a rollout; null if it has none. */
  find(name: RolloutName): Promise<RolloutRecord | null>;
  /** Reads the record at a key that was listed; null if it is gone. */
  read(key: string): Promise<RolloutRecord | null>;
  /** Lists the records of a run, a sweep or a rollout by hand, by its workflow id, or without one of all rollouts. */
  list(owner?: string): AsyncIterable<ListedObject>;
  /** Writes the record of a regrade beside that of its rollout, unless it has one. */
  writeRegrade(of: RolloutName, record: RegradeRecord): Promise<void>;
  /** Reads what regrades found, the oldest first. */
  regrades(of: RolloutName): Promise<readonly RegradeRecord[]>;
}

/** Whether a record could be reached and can't be read: it is cut off, or of another version of temper. */
export const isUnreadable = (error: unknown): error is TemperFailure =>
  error instanceof TemperFailure && error.type === 'BlobMissing';

/** Finds the result of a rollout in its record; null if it has none, or one that can't be read. */
export async function findResult(
  rollouts: Pick<RolloutRecords, 'find'>,
  name: RolloutName,
): Promise<RolloutResult | null> {
  try {
    return (await rollouts.find(name))?.result ?? null;
  } catch (error) {
    if (isUnreadable(error)) return null;
    throw error;
  }
}

/** The folder of the records. */
export const rolloutFolder = 'rollouts';
/** The groups of a run, or the tasks of a sweep, whose records are below one folder: it must not grow without bound. */
const perFolder = 100;
const suffix = '.json';
/** The end of the key of a rollout by hand. A run or sweep of the same id has its rollouts beside it. */
const byHand = `/rollout${suffix}`;
/** Marks a regrade in the name of its record, which begins like that of its rollout. */
const regradeMark = '.regrade-';

/**
 * Creates the records of rollouts. Their keys follow from the workflow ids alone (`placeOfRollout`):
 * `rollouts/<2 hex digits>/<owner>/<key>/groups-<hundreds>/group-<n>/rollout-<n>.json` for those of a run,
 * `…/tasks-<hundreds>/rollout-<task>-<attempt>.json` for those of a sweep and `…/rollout.json` for one by hand.
 */
export function createRolloutRecords(objects: Objects): RolloutRecords {
  const read = async (key: string): Promise<RolloutRecord | null> => {
    const found = await objects.get(key);
    return found === null ? null : parse(`${objects.location}/${key}`, found.bytes);
  };

  async function keyOf({ workflowId, rollout }: RolloutName): Promise<string | null> {
    const known = recordKey(workflowId, rollout);
    if (known !== null) return known;
    const found: ListedObject[] = [];
    for await (const one of objects.list(ownerFolder(workflowId))) if (one.key.endsWith(byHand)) found.push(one);
    return found.toSorted((a, b) => b.changedAtMs - a.changedAtMs)[0]?.key ?? null;
  }

  return {
    read,
    async write(record) {
      const { workflowId, rollout } = record.result;
      const key = requiredKey(workflowId, rollout);
      const written = await objects.replace(key, encode(record), null);
      if (written !== null) return record;
      const first = await read(key);
      if (first === null)
        throw new TemperFailure('StoreUnavailable', `the record ${key} was removed while it was read`);
      return first;
    },
    async find(name) {
      const key = await keyOf(name);
      return key === null ? null : read(key);
    },
    async *list(owner) {
      for await (const found of objects.list(owner === undefined ? rolloutFolder : ownerFolder(owner))) {
        if (isRolloutRecord(found.key)) yield found;
      }
    },
    async writeRegrade({ workflowId, rollout }, record) {
      const key = requiredKey(workflowId, rollout);
      const beside = `${besideOf(key)}${shortKey(record.regradeKey)}${suffix}`;
      await objects.replace(beside, encode(record), null);
    },
    async regrades({ workflowId, rollout }) {
      const key = requiredKey(workflowId, rollout);
      const found: RegradeRecord[] = [];
      for await (const { key: beside } of objects.list(key.slice(0, key.lastIndexOf('/')))) {
        const one = beside.startsWith(besideOf(key)) ? await objects.get(beside) : null;
        if (one !== null) found.push(parseRegrade(`${objects.location}/${beside}`, one.bytes));
      }
      return found.toSorted((a, b) => a.recordedAt - b.recordedAt);
    },
  };
}

/** Whether a key below the folder is that of a rollout's record, and not that of a regrade beside it. */
export const isRolloutRecord = (key: string): boolean => key.endsWith(suffix) && !key.includes(regradeMark);

/** Returns the key of a record; null for a rollout by hand whose own key is not known. */
export function recordKey(workflowId: string, rollout?: string): string | null {
  const place = placeOfRollout(workflowId);
  const folder = ownerFolder(place.owner);
  if (place.kind === 'by-hand') return rollout === undefined ? null : `${folder}/${rollout}${byHand}`;
  const { key, name } = place;
  if (place.kind === 'sweep') return `${folder}/${key}/${hundreds('tasks', place.task)}/${name}${suffix}`;
  return `${folder}/${key}/${hundreds('groups', place.group)}/group-${place.group}/${name}${suffix}`;
}

/** Returns the short key of the run or sweep, or the key of the rollout by hand, to which a record or a regrade belongs. */
export const ownerKeyOf = (recordKeyOrRegrade: string): string => recordKeyOrRegrade.split('/')[3] ?? '';

function requiredKey(workflowId: string, rollout: string | undefined): string {
  const key = recordKey(workflowId, rollout);
  if (key === null) throw new Error(`expected the key of the rollout ${workflowId}, got none`);
  return key;
}

/** Begins the keys of the records of regrades beside a rollout's own. */
const besideOf = (key: string): string => `${key.slice(0, -suffix.length)}${regradeMark}`;

const hundreds = (what: string, number: number): string => `${what}-${Math.floor(number / perFolder)}`;

const ownerFolder = (owner: string): string => folderOfId(rolloutFolder, owner);

/** Returns the folder of a workflow id below another one: the id as far as it is safe in a key, and a part of its digest. */
export function folderOfId(below: string, id: string): string {
  const digest = sha256(id);
  const readable = id.replaceAll(/[^a-zA-Z0-9_-]+/g, '-').slice(0, 60);
  return `${below}/${digest.slice(0, 2)}/${readable}-${digest.slice(0, 16)}`;
}

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

const parse = (place: string, bytes: Uint8Array): RolloutRecord =>
  parseAs(rolloutRecord, place, bytes) as unknown as RolloutRecord;
const parseRegrade = (place: string, bytes: Uint8Array): RegradeRecord =>
  parseAs(regradeRecord, place, bytes) as unknown as RegradeRecord;

function parseAs(schema: typeof rolloutRecord | typeof regradeRecord, place: string, bytes: Uint8Array): unknown {
  const refused = (why: string): TemperFailure =>
    new TemperFailure('BlobMissing', `${place}: expected a rollout's record of format ${recordFormat}, ${why}`);
  try {
    const parsed = schema.safeParse(JSON.parse(new TextDecoder().decode(bytes)));
    if (parsed.success) return parsed.data;
    throw refused(`got another value: ${errorMessage(parsed.error)}; read it with the version of temper that wrote it`);
  } catch (error) {
    if (error instanceof TemperFailure) throw error;
    throw refused(`got no JSON: ${errorMessage(error)}`);
  }
}
