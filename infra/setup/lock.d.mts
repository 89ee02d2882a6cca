import type { ProcessIdentity } from '../process/process-identity.mjs';

export interface Lock {
  release(): void;
}

/** Takes a lock file that names its holder, or returns `{ holder }` if a living process has it. */
export function tryLock(path: string): Lock | { readonly holder: ProcessIdentity };

/** Waits for the lock, runs `work` and releases the lock. `onWait` is called once with the process that has it. */
export function withLock<Result>(
  path: string,
  work: () => Result | Promise<Result>,
  options?: { readonly onWait?: (holder: ProcessIdentity) => void },
): Promise<Result>;
