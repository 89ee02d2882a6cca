import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { TaskAddress, TaskSetAddress } from '../../workflows/contracts/task.ts';
import { type DataSetAddress, dataSetForm, parseDataSetAddress } from '../data-sets/address.ts';
import { type Split, splits } from './generated/bug.ts';

/** A parsed address of one task. */
export type ParsedTaskAddress =
  | { readonly kind: 'generated'; readonly split: Split; readonly seed: number; readonly index: number }
  | HarborAddress
  | PackedAddress
  | DataSetAddress;

/** A parsed address of a task in Harbor's layout, or of a set of such tasks. */
export interface HarborAddress {
  readonly kind: 'harbor';
  readonly directory: string;
  /** `root`: the agents of tasks that name no account are root. */
  readonly user: 'root' | null;
}

/** A parsed address of a packed task, with its id if the address names it, or of a packed set, which has no id. */
interface PackedAddress {
  readonly kind: 'blob';
  readonly digest: string;
  readonly task: string | null;
}

/** A parsed address of a task set. A generated set without a count is endless. */
export type ParsedSetAddress = GeneratedSet | Exclude<ParsedTaskAddress, { kind: 'generated' }>;

export interface GeneratedSet {
  readonly kind: 'generated';
  readonly split: Split;
  readonly seed: number;
  readonly count: number | null;
}

const forms = {
  task: 'generated:train/<seed>/<index>, generated:test/<seed>/<index>, harbor:/<directory>[?user=root], blob:<sha256>, blob:<sha256>#<id> or a data set',
  set: 'generated:train/<seed>, generated:test/<seed>?count=<tasks>, harbor:/<directory>[?user=root], blob:<sha256> or a data set',
} as const;

/** Whether a text has the form of an address, as opposed to that of a path. */
export const isAddress = (text: string): boolean =>
  /^(generated|harbor|blob):/.test(text) || parseDataSetAddress(text) !== null;

/** Parses the address of a task. Throws TemperFailure UnknownTask. */
export function parseTaskAddress(address: TaskAddress): ParsedTaskAddress {
  const common = parseCommonForm(address);
  if (common !== null) return common;
  const [, split, seed, index] = /^generated:(\w+)\/(\d{1,10})\/(\d{1,10})$/.exec(address) ?? [];
  if (!isSplit(split)) throw unknownAddress('task', address);
  return { kind: 'generated', split, seed: Number(seed), index: Number(index) };
}

/** Parses the address of a task set. Throws TemperFailure UnknownTask. */
export function parseSetAddress(address: TaskSetAddress): ParsedSetAddress {
  const common = parseCommonForm(address);
  if (common !== null) return common;
  const [, split, seed, count] = /^generated:(\w+)\/(\d{1,10})(?:\?count=([1-9]\d{0,6}))?$/.exec(address) ?? [];
  if (!isSplit(split)) throw unknownAddress('set', address);
  return { kind: 'generated', split, seed: Number(seed), count: count === undefined ? null : Number(count) };
}

/** The address of the index-th task of a generated set. */
export const generatedAddress = ({ split, seed }: Pick<GeneratedSet, 'split' | 'seed'>, index: number): TaskAddress =>
  `generated:${split}/${seed}/${index}`;

/** Returns the address of a packed task, which keeps the id that it had in its set. */
export const packedAddress = (digest: string, id: string): TaskAddress => `blob:${digest}#${id}`;

/** Returns the address of a packed task or set alone, whatever the ids in it. */
export const blobAddress = (digest: string): TaskAddress & TaskSetAddress => `blob:${digest}`;

/** Parses the forms that tasks and sets have in common. Returns null for any other. */
function parseCommonForm(address: string): Exclude<ParsedTaskAddress, { kind: 'generated' }> | null {
  const [, digest, task = null] = /^blob:([0-9a-f]{64})(?:#(.+))?$/s.exec(address) ?? [];
  if (digest !== undefined) return { kind: 'blob', digest, task };
  return parseHarborAddress(address) ?? parseDataSetAddress(address);
}

/** Parses the address of a directory in Harbor's layout. Returns null for any other. Throws UnknownTask for a wrong option. */
export function parseHarborAddress(address: string): HarborAddress | null {
  const [, directory, user = null] = /^harbor:(\/.*?)(?:\?user=([^/]*))?$/s.exec(address) ?? [];
  if (directory === undefined) return null;
  if (user === null || user === 'root') return { kind: 'harbor', directory, user };
  throw new TemperFailure('UnknownTask', `${address}: user: expected root, got ${JSON.stringify(user)}`);
}

/** The address of a directory in Harbor's layout. */
export const harborAddress = ({ directory, user }: Omit<HarborAddress, 'kind'>): TaskAddress & TaskSetAddress =>
  `harbor:${directory}${user === null ? '' : `?user=${user}`}`;

const isSplit = (split: string | undefined): split is Split => splits.some((known) => known === split);

const unknownAddress = (what: 'task' | 'set', address: string): TemperFailure =>
  new TemperFailure('UnknownTask', `expected ${forms[what]} (${dataSetForm}), got ${JSON.stringify(address)}`);
