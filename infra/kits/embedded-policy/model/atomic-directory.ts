import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { PolicyError } from '../errors.ts';

/** Writes a directory, all or nothing: files under a temporary name beside it, fsync, rename. Returns the bytes written. */
export function writeDirectoryAtomically(dir: string, files: ReadonlyMap<string, Uint8Array>): number {
  const target = resolve(dir);
  refuseExisting(target);
  const parent = dirname(target);
  makeDirectory(parent);
  const temporary = join(parent, `.${basename(target)}.${randomBytes(6).toString('hex')}.tmp`);
  mkdirSync(temporary);
  let total = 0;
  try {
    for (const [name, bytes] of files) {
      writeDurably(join(temporary, name), bytes);
      total += bytes.length;
    }
    syncDirectory(temporary);
    refuseExisting(target);
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
  syncDirectory(parent);
  return total;
}

function refuseExisting(target: string): void {
  if (!existsSync(target)) return;
  const message = `${target}: the directory already exists; save under another name`;
  throw new PolicyError('checkpoint-exists', message, { field: target });
}

function writeDurably(path: string, bytes: Uint8Array): void {
  const file = openSync(path, 'wx');
  try {
    for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** The directories whose names this process has made durable. */
const durable = new Set<string>();

/** Creates a directory and those above it, durably. Those that exist are made durable once, since their maker may have been killed. */
export function makeDirectory(path: string): void {
  const made = resolve(path);
  const first = mkdirSync(made, { recursive: true });
  const isNew = (at: string): boolean => first !== undefined && at.length >= first.length;
  for (let at = made; isNew(at) || !durable.has(at); at = dirname(at)) {
    const above = dirname(at);
    if (above === at) return;
    syncDirectory(above);
    durable.add(at);
  }
}

/** Makes the names in a directory durable, which a power cut may undo before. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
