import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
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

export function releaseAccounts(accounts: Accounts): void {
  if (accounts.slot !== undefined) rmSync(join(registry, String(accounts.slot)), { force: true });
}

function pairOf(uid: number): Accounts {
  return { agent: { uid, gid: uid }, grader: { uid: uid + 1, gid: uid + 1 } };
}

function sharedAccounts(): Accounts {
  const self = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  return { agent: self, grader: self };
}

function take(slot: number, directory: string): boolean {
  const lease = join(registry, String(slot));
  try {
    writeFileSync(lease, directory, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  if (!isLeftover(lease)) return false;
  rmSync(lease, { force: true });
  return take(slot, directory);
}

function isLeftover(lease: string): boolean {
  try {
    if (Date.now() - statSync(lease).mtimeMs < leaseGraceMs) return false;
    return !exists(readFileSync(lease, 'utf8'));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return true;
    throw error;
  }
}

function exists(path: string): boolean {
  return path !== '' && statSync(path, { throwIfNoEntry: false }) !== undefined;
}
