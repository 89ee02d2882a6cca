import type { ProcessIdentity } from './process-identity.mjs';

export interface Lock {
  /** Names another process as the holder: the lock then lasts as long as that one. */
  handOver(pid: number): void;
  release(): void;
}

/** Answers `{ holder }` when a living process has the lock. */
export function tryLock(path: string): Lock | { readonly holder: ProcessIdentity };

/** Waits for the lock, runs `work` and releases it. `onWait` is told once who holds it. */
export function withLock<Result>(
  path: string,
  work: () => Result | Promise<Result>,
  options?: { readonly onWait?: (holder: ProcessIdentity) => void; readonly signal?: AbortSignal },
): Promise<Result>;
