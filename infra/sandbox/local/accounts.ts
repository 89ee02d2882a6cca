/**
 * Real uids for local sandboxes. Started as root, every sandbox gets two of its own from a range that no distribution
 * hands out, so that limits per uid hold and files of one are closed to the others; otherwise all share the caller's uid.
 */
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashText } from '../../hash.ts';
import { errorCode, SandboxFailure } from '../failure.ts';
import type { Account } from '../sandbox.ts';
import type { Owner } from './beneath.ts';

export interface Accounts {
  readonly agent: Owner;
  readonly grader: Owner;
  /** Present when the uids are leased and must be given back. */
  readonly slot?: number;
}

/** Two uids per slot, from `firstUid`. Machine-wide: two stacks on one machine must not share a uid. */
const firstUid = 740_000;
const slots = 20_000;
const registry = '/run/temper/uids';
/** A lease whose sandbox does not exist is a leftover once creation can't be under way any more. */
const leaseGraceMs = 60_000;

export const runsAsRoot = (): boolean => process.getuid?.() === 0;

export function ownerOf(accounts: Accounts, account: Account): Owner {
  return accounts[account];
}

/** Uids for a trial run that nobody leases. */
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
  throw new SandboxFailure('Internal', `expected one of ${slots} uid leases in ${registry} to be free, got none`);
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
