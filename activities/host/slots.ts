import type { SandboxInfo } from '../../infra/sandbox/sandbox.ts';
import { type RolloutEpoch, sessionId } from '../../workflows/contracts/ids.ts';
import type { Admission } from './admission.ts';

export interface SlotHolder {
  readonly expiresAtMs: number;
  readonly sweep: boolean;
}

/**
 * The slots for agents' sandboxes on one host. A slot is taken when a rollout is placed and released with its sandbox, so
 * capacity counts live sandboxes, not running activities.
 */
export interface Slots {
  readonly capacity: number;
  readonly taken: number;
  readonly takenBySweeps: number;
  /** Takes a slot for an epoch of a rollout. Repeatable: an epoch has one slot. */
  take(epoch: RolloutEpoch, holder: SlotHolder): void;
  isTakenBy(epoch: RolloutEpoch): boolean;
  release(epoch: RolloutEpoch): void;
  /**
   * Takes a slot for each agent's sandbox that `list` finds, except those released since the listing began: the listing may
   * be older than their removal, and nothing would release their slots again.
   */
  takeListed(list: () => Promise<readonly SandboxInfo[]>): Promise<readonly SandboxInfo[]>;
  /** Resolves when a slot is free; it is then reserved for the caller until `settle`. */
  reserve(signal: AbortSignal): Promise<void>;
  tryReserve(): boolean;
  settle(): void;
  /** Lists the epochs whose slots are expired: those that were placed and never provisioned, or whose stages wait. */
  expired(nowMs: number): readonly RolloutEpoch[];
}

const unlimited: Pick<Admission, 'admits' | 'placed' | 'onChange'> = {
  admits: () => true,
  placed: () => undefined,
  onChange: () => undefined,
};

/** Creates the slots of a host. By default only their number bounds what the host takes. */
export function createSlots(capacity: number, admission = unlimited): Slots {
  const holders = new Map<string, SlotHolder & { readonly epoch: RolloutEpoch }>();
  const waiting = new Set<() => void>();
  /** The sessions of the epochs that were released during each listing in progress. */
  const listings = new Set<Set<string>>();
  let reserved = 0;

  const isFree = (): boolean => holders.size + reserved < capacity && admission.admits(holders.size + reserved);
  const wake = (): void => {
    for (const resume of [...waiting]) {
      if (!isFree()) return;
      waiting.delete(resume);
      resume();
    }
  };
  admission.onChange(wake);
  return {
    capacity,
    get taken() {
      return holders.size;
    },
    get takenBySweeps() {
      return [...holders.values()].filter(({ sweep }) => sweep).length;
    },
    take: (epoch, holder) => {
      if (!holders.has(sessionId(epoch))) admission.placed();
      holders.set(sessionId(epoch), { ...holder, epoch });
    },
    isTakenBy: (epoch) => holders.has(sessionId(epoch)),
    release: (epoch) => {
      holders.delete(sessionId(epoch));
      for (const released of listings) released.add(sessionId(epoch));
      wake();
    },
    takeListed: async (list) => {
      const released = new Set<string>();
      listings.add(released);
      try {
        const found = await list();
        for (const { labels } of found) {
          const { purpose, expiresAtMs, sweep = false } = labels;
          if (purpose !== 'agent' || released.has(sessionId(labels))) continue;
          const { rollout, epoch } = labels;
          holders.set(sessionId(labels), { expiresAtMs, sweep, epoch: { rollout, epoch } });
        }
        return found;
      } finally {
        listings.delete(released);
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
        if (isFree()) return grant();
        waiting.add(grant);
        signal.addEventListener('abort', abort, { once: true });
      }),
    tryReserve: () => {
      if (!isFree()) return false;
      reserved += 1;
      return true;
    },
    settle: () => {
      reserved -= 1;
      wake();
    },
    expired: (nowMs) =>
      [...holders.values()].filter(({ expiresAtMs }) => expiresAtMs < nowMs).map(({ epoch }) => epoch),
  };
}
