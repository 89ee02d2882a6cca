import {
  appendFileSync,
  type BigIntStats,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { hashText } from '../../hash.ts';
import { errorCode, SandboxFailure } from '../failure.ts';
import type { Account } from '../sandbox.ts';
import type { Owner } from './safe-files.ts';

/**
 * The owners of a local sandbox's two accounts. If temper runs as root, every sandbox has two uids of its own from a range that
 * no distribution uses, so that limits per uid hold and other sandboxes can't access its files. Otherwise all sandboxes share
 * the caller's uid.
 */
export interface Accounts {
  readonly agent: Owner;
  readonly grader: Owner;
  /** Number of the uid lease; absent if the uids are not leased. */
  readonly slot?: number;
}

/** Each slot has two uids, from `firstUid` on. Slots are machine-wide: two stacks on one machine must not share a uid. */
const firstUid = 740_000;
const slots = 20_000;
const registry = '/run/temper/uids';
/** A lease without a sandbox is a leftover after this time, because the sandbox's creation would have finished. */
const leaseGraceMs = 60_000;

export const runsAsRoot = (): boolean => process.getuid?.() === 0;

export function ownerOf(accounts: Accounts, account: Account): Owner {
  return accounts[account];
}

/** Unleased uids for a trial run. */
export function trialAccounts(): Accounts {
  return runsAsRoot() ? pairOf(firstUid - 2) : sharedAccounts();
}

/** Leases uids for the sandbox that will live at `directory`. */
export function leaseAccounts(directory: string): Accounts {
  if (!runsAsRoot()) return sharedAccounts();
  mkdirSync(registry, { recursive: true, mode: 0o700 });
  const start = hashText(directory) % slots;
  for (let probe = 0; probe < slots; probe++) {
    const slot = (start + probe) % slots;
    if (take(slot, directory)) return { slot, ...pairOf(firstUid + 2 * slot) };
  }
  throw new SandboxFailure('Internal', `all ${slots} uid leases in ${registry} are taken; remove sandboxes`);
}

/** Extends the lease of a sandbox to another directory, to which it is about to be moved. */
export function extendLease({ slot }: Accounts, { from, to }: { readonly from: string; readonly to: string }): void {
  if (slot !== undefined && holdersOf(slot).includes(from)) appendFileSync(leaseOf(slot), `\n${to}`);
}

/** Ends the lease of the sandbox that lived at `directory`. A lease that another sandbox has by now stays. */
export function releaseAccounts({ slot }: Accounts, directory: string): void {
  if (slot === undefined) return;
  const lease = statSync(leaseOf(slot), { bigint: true, throwIfNoEntry: false });
  if (lease !== undefined && holdersOf(slot).includes(directory)) removeLease(slot, lease);
}

const leaseOf = (slot: number): string => join(registry, String(slot));

/** Returns the directories for which a lease was taken and extended; none if it is gone. */
function holdersOf(slot: number): readonly string[] {
  try {
    return readFileSync(leaseOf(slot), 'utf8').split('\n');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

function pairOf(uid: number): Accounts {
  return { agent: { uid, gid: uid }, grader: { uid: uid + 1, gid: uid + 1 } };
}

function sharedAccounts(): Accounts {
  const self = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  return { agent: self, grader: self };
}

function take(slot: number, directory: string): boolean {
  try {
    writeFileSync(leaseOf(slot), directory, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  const lease = statSync(leaseOf(slot), { bigint: true, throwIfNoEntry: false });
  const isFree = lease === undefined || (isLeftover(slot, lease) && removeLease(slot, lease));
  return isFree && take(slot, directory);
}

function isLeftover(slot: number, { mtimeMs }: BigIntStats): boolean {
  return Date.now() - Number(mtimeMs) >= leaseGraceMs && !holdersOf(slot).some(exists);
}

/**
 * Removes a lease. Returns false if another process does so, or if there is another one by now, which a process has taken since. Only
 * one process can make the second name, which stands for this very lease.
 */
function removeLease(slot: number, { ino, mtimeNs }: BigIntStats): boolean {
  const claim = `${leaseOf(slot)}.${ino}-${mtimeNs}`;
  try {
    linkSync(leaseOf(slot), claim);
  } catch (error) {
    if (errorCode(error) === 'EEXIST' || errorCode(error) === 'ENOENT') return false;
    throw error;
  }
  try {
    const claimed = statSync(claim, { bigint: true });
    if (claimed.ino !== ino || claimed.mtimeNs !== mtimeNs) return false;
    rmSync(leaseOf(slot), { force: true });
    return true;
  } finally {
    rmSync(claim, { force: true });
  }
}

function exists(path: string): boolean {
  return path !== '' && statSync(path, { throwIfNoEntry: false }) !== undefined;
}
