import type { SandboxInfo } from '../../infra/sandbox/sandbox.ts';
import { type RolloutEpoch, sessionId } from '../../workflows/contracts/ids.ts';

export interface PlaceHolder {
  readonly expiresAtMs: number;
  readonly sweep: boolean;
}

/**
 * How many agents' sandboxes a host may hold. A place is taken when a rollout is placed and given back when its sandbox is
 * released, so capacity counts live sandboxes, not running activities.
 */
export interface Places {
  readonly capacity: number;
  readonly taken: number;
  readonly takenBySweeps: number;
  /** Repeatable: an attempt holds one place. */
  take(attempt: RolloutEpoch, holder: PlaceHolder): void;
  holds(attempt: RolloutEpoch): boolean;
  giveBack(attempt: RolloutEpoch): void;
  /**
   * Takes a place for each agent's sandbox that `list` finds. Not for one that was given back since the listing began: what
   * shows it may be older than its removal, and nobody would give its place back a second time.
   */
  takeFound(list: () => Promise<readonly SandboxInfo[]>): Promise<readonly SandboxInfo[]>;
  /** Resolves when a place is free; it is then held for the caller until `settle`. */
  reserve(signal: AbortSignal): Promise<void>;
  tryReserve(): boolean;
  settle(): void;
  /** Frees what expired: a rollout that was placed and then never provisioned. */
  expire(nowMs: number): void;
}

export function createPlaces(capacity: number): Places {
  const held = new Map<string, PlaceHolder>();
  const waiting = new Set<() => void>();
  /** Of each listing in progress, the attempts that were given back since it began. */
  const listings = new Set<Set<string>>();
  let reserved = 0;

  const free = (): boolean => held.size + reserved < capacity;
  const wake = (): void => {
    for (const resume of [...waiting]) {
      if (!free()) return;
      waiting.delete(resume);
      resume();
    }
  };

  return {
    capacity,
    get taken() {
      return held.size;
    },
    get takenBySweeps() {
      return [...held.values()].filter(({ sweep }) => sweep).length;
    },
    take: (attempt, holder) => {
      held.set(sessionId(attempt), holder);
    },
    holds: (attempt) => held.has(sessionId(attempt)),
    giveBack: (attempt) => {
      held.delete(sessionId(attempt));
      for (const givenBack of listings) givenBack.add(sessionId(attempt));
      wake();
    },
    takeFound: async (list) => {
      const givenBack = new Set<string>();
      listings.add(givenBack);
      try {
        const found = await list();
        for (const { labels } of found) {
          const attempt = sessionId(labels);
          const { purpose, expiresAtMs, sweep = false } = labels;
          if (purpose === 'agent' && !givenBack.has(attempt)) held.set(attempt, { expiresAtMs, sweep });
        }
        return found;
      } finally {
        listings.delete(givenBack);
      }
    },
    reserve: (signal) =>
      new Promise((resolve, reject) => {
        const grant = (): void => {
          signal.removeEventListener('abort', abort);
          reserved += 1;
          resolve();
        };
        const abort = (): void => {
          waiting.delete(grant);
          reject(signal.reason);
        };
        if (free()) return grant();
        waiting.add(grant);
        signal.addEventListener('abort', abort, { once: true });
      }),
    tryReserve: () => {
      if (!free()) return false;
      reserved += 1;
      return true;
    },
    settle: () => {
      reserved -= 1;
      wake();
    },
    expire: (nowMs) => {
      for (const [key, { expiresAtMs }] of held) if (expiresAtMs < nowMs) held.delete(key);
      wake();
    },
  };
}
