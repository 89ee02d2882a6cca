/** Directories that many commands share, made once and never changed. */
import { createHash, randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export interface Prepared {
  readonly name: string;
  /** All that its content depends on: another state is another directory. */
  readonly state: string;
  readonly fill: (staging: string) => void;
}

/** The directory below `root`; made if there is none of this state. */
export function prepareDirectory(root: string, { name, state, fill }: Prepared): string {
  const directory = join(root, `.${name}-${createHash('sha256').update(state).digest('hex').slice(0, 12)}`);
  if (existsSync(directory)) return directory;
  const staging = join(root, `.${name}-${randomUUID()}`);
  // Not with `root` itself, which may be a sandbox that is removed meanwhile.
  mkdirSync(staging);
  fill(staging);
  chmodSync(staging, 0o755);
  try {
    renameSync(staging, directory);
  } catch (error) {
    rmSync(staging, { recursive: true, force: true });
    // Somebody else made the same at the same time.
    if (!existsSync(directory)) throw error;
  }
  return directory;
}
