import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, SandboxFailure } from '../failure.ts';
import { requireName } from '../names.ts';
import type { SandboxSpec } from '../sandbox.ts';
import { extendLease, leaseAccounts, releaseAccounts } from './accounts.ts';
import { type ControlGroup, createGroup, removeGroup } from './control-group.ts';
import { createLayout, readSandboxDirectory, type SandboxDirectory } from './layout.ts';
import { removeTree } from './remove-tree.ts';

// The sandbox directories of one stack on this host. They are created, removed and listed atomically, by renames.

/** An incomplete directory is a leftover after this time, because the process that was creating it has died. */
const creationGraceMs = 60_000;

export function findDirectory(path: string): SandboxDirectory | undefined {
  try {
    return readSandboxDirectory(path);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Creates the directory, or returns the one that another process created at the same time. */
export async function createDirectory(home: string, spec: SandboxSpec): Promise<SandboxDirectory> {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const path = join(home, requireName(spec.name));
  const staging = join(home, `.new-${randomUUID()}`);
  const accounts = leaseAccounts(path);
  let group: ControlGroup | undefined;
  try {
    group = accounts.slot === undefined ? undefined : createGroup(String(accounts.slot), spec);
    createLayout(staging, { spec, accounts, createdAtMs: Date.now(), ...(group && { group }) });
    renameSync(staging, path);
    return readSandboxDirectory(path);
  } catch (error) {
    if (group) await removeGroup(group);
    releaseAccounts(accounts, path);
    await rm(staging, { recursive: true, force: true });
    const winner = findDirectory(path);
    if (winner && (errorCode(error) === 'ENOTEMPTY' || errorCode(error) === 'EEXIST')) return winner;
    throw hostFailure(error, path);
  }
}

/**
 * Renames the directory of a sandbox that is about to be removed, so that nothing more can be started in it. Undefined if there is
 * no such directory or it is incomplete; the latter is then a leftover.
 */
export function detachDirectory(home: string, name: string): SandboxDirectory | undefined {
  const path = join(home, requireName(name));
  const gone = join(home, `.gone-${randomUUID()}`);
  const found = findDirectory(path);
  // Another sandbox must not get its uids before it is erased.
  if (found) extendLease(found.accounts, { from: path, to: gone });
  try {
    renameSync(path, gone);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  return findDirectory(gone);
}

export async function eraseDirectory(sandbox: SandboxDirectory): Promise<void> {
  await removeTree(sandbox.path);
  if (sandbox.group) await removeGroup(sandbox.group);
  releaseAccounts(sandbox.accounts, sandbox.path);
}

export function listDirectories(home: string): readonly SandboxDirectory[] {
  return entries(home, (name) => !name.startsWith('.'))
    .map(findDirectory)
    .filter((sandbox) => sandbox !== undefined);
}

/** Paths of directories whose removal was interrupted, or whose creation was. */
export function leftoverPaths(home: string): readonly string[] {
  return entries(home, (name) => name.startsWith('.')).filter((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat !== undefined && Date.now() - stat.ctimeMs >= creationGraceMs;
  });
}

function entries(home: string, keep: (name: string) => boolean): readonly string[] {
  if (!existsSync(home)) return [];
  return readdirSync(home)
    .filter(keep)
    .map((name) => join(home, name));
}

function hostFailure(cause: unknown, path: string): unknown {
  if (errorCode(cause) !== 'ENOSPC' && errorCode(cause) !== 'EDQUOT') return cause;
  return new SandboxFailure('DiskFull', `no space left for a sandbox at ${path}; free some space`, { cause });
}
