import { createHash, randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** A directory that many commands share; it is created once and never changed. */
export interface SharedDirectory {
  readonly name: string;
  /** Everything that its content depends on: another state gives another directory. */
  readonly state: string;
  readonly fill: (staging: string) => void;
}

/** Returns the path of the directory, below `root`, and creates it unless this state exists. */
export function prepareDirectory(root: string, { name, state, fill }: SharedDirectory): string {
  const directory = join(root, `.${name}-${createHash('sha256').update(state).digest('hex').slice(0, 12)}`);
  if (existsSync(directory)) return directory;
  const staging = join(root, `.${name}-${randomUUID()}`);
  // `root` itself is not created, since it may be a sandbox that is being removed.
  mkdirSync(staging);
  fill(staging);
  chmodSync(staging, 0o755);
  try {
    renameSync(staging, directory);
  } catch (error) {
    rmSync(staging, { recursive: true, force: true });
    // Another process has created the same directory.
    if (!existsSync(directory)) throw error;
  }
  return directory;
}
