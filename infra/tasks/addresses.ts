import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { TaskAddress, TaskSetAddress } from '../../workflows/contracts/task.ts';
import { type DataSetAddress, dataSetForm, parseDataSetAddress } from '../data-sets/address.ts';
import { type Split, splits } from './generated/bug.ts';

/** A parsed address; a set may have an end or none. */
export type Address =
  | { readonly kind: 'generated'; readonly split: Split; readonly seed: number; readonly index: number }
  | { readonly kind: 'harbor'; readonly directory: string }
  | { readonly kind: 'blob'; readonly digest: string }
  | DataSetAddress;

export type SetAddress =
  | { readonly kind: 'generated'; readonly split: Split; readonly seed: number; readonly count: number | null }
  | { readonly kind: 'harbor'; readonly directory: string }
  | { readonly kind: 'blob'; readonly digest: string }
  | DataSetAddress;

const forms = {
  task: 'generated:train/<seed>/<index>, generated:test/<seed>/<index>, harbor:/<directory>, blob:<sha256> or a data set',
  set: 'generated:train/<seed>, generated:test/<seed>?count=<tasks>, harbor:/<directory>, blob:<sha256> or a data set',
} as const;

/** Has this text the form of an address, and not that of a path? */
export const isAddress = (text: string): boolean =>
  /^(generated|harbor|blob):/.test(text) || parseDataSetAddress(text) !== null;

export function parseTaskAddress(address: TaskAddress): Address {
  const other = parseOther(address);
  if (other !== null) return other;
  const [, split, seed, index] = /^generated:(\w+)\/(\d{1,10})\/(\d{1,10})$/.exec(address) ?? [];
  if (!isSplit(split)) throw unknown('task', address);
  return { kind: 'generated', split, seed: Number(seed), index: Number(index) };
}

export function parseSetAddress(address: TaskSetAddress): SetAddress {
  const other = parseOther(address);
  if (other !== null) return other;
  const [, split, seed, count] = /^generated:(\w+)\/(\d{1,10})(?:\?count=([1-9]\d{0,6}))?$/.exec(address) ?? [];
  if (!isSplit(split)) throw unknown('set', address);
  return { kind: 'generated', split, seed: Number(seed), count: count === undefined ? null : Number(count) };
}

function parseOther(address: string): Extract<Address, { kind: 'harbor' | 'blob' | 'data-set' }> | null {
  const [, digest] = /^blob:([0-9a-f]{64})$/.exec(address) ?? [];
  if (digest !== undefined) return { kind: 'blob', digest };
  if (address.startsWith('harbor:/')) return { kind: 'harbor', directory: address.slice('harbor:'.length) };
  return parseDataSetAddress(address);
}

const isSplit = (split: string | undefined): split is Split => splits.some((known) => known === split);

/** The real path of a file or directory below one of the roots; links can't lead out of them. */
export async function resolveBelow(roots: readonly string[], directory: string): Promise<string> {
  const real = await realpath(directory).catch(() => null);
  const realRoots = await Promise.all(roots.map((root) => realpath(root).catch(() => null)));
  const below = realRoots.some((root) => root !== null && (real === root || real?.startsWith(root + sep)));
  if (real !== null && below) return real;
  const allowed = roots.length === 0 ? 'none are configured' : roots.join(', ');
  if (real !== null) {
    const text = `${directory}: expected a path below one of the task roots (${allowed}), got ${real}; add its root to TEMPER_TASK_ROOTS`;
    throw new TemperFailure('UnknownTask', text);
  }
  throw new TemperFailure('UnknownTask', `${directory}: ${await neighbours(realRoots, directory)}`);
}

/** The task directories of a directory, or it itself; sorted by name. */
export async function taskDirectories(directory: string): Promise<readonly string[]> {
  if (await isTask(directory)) return [directory];
  const entries = await readdir(directory, { withFileTypes: true });
  const children = entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name));
  const found = await Promise.all(children.map(isTask));
  const tasks = children.filter((_, index) => found[index]).sort();
  if (tasks.length > 0) return tasks;
  const text = `harbor:${directory}: expected a directory with task.toml, or one of such directories, got ${entries.length} entries without`;
  throw new TemperFailure('UnknownTask', text);
}

const isTask = (directory: string): Promise<boolean> =>
  stat(join(directory, 'task.toml')).then(
    (found) => found.isFile(),
    () => false,
  );

/** Only says what lies below a root: a message must not list the host's directories. */
async function neighbours(roots: readonly (string | null)[], directory: string): Promise<string> {
  const parent = await realpath(join(directory, '..')).catch(() => null);
  const visible = parent !== null && roots.some((root) => root !== null && `${parent}${sep}`.startsWith(root + sep));
  if (!visible) return 'there is no such directory';
  const there = (await taskDirectories(parent).catch(() => [])).map((path) => basename(path));
  if (there.length === 0) return 'there is no such directory, and no task beside it';
  const shown = there.slice(0, 5).join(', ');
  return `there is no such directory; beside it are ${shown}${there.length > 5 ? ` and ${there.length - 5} more` : ''}`;
}

const unknown = (what: 'task' | 'set', address: string): TemperFailure =>
  new TemperFailure('UnknownTask', `expected ${forms[what]} (${dataSetForm}), got ${JSON.stringify(address)}`);
