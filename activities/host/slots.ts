import type { SandboxInfo, SandboxLabels } from '../../infra/sandbox/sandbox.ts';
import { type RolloutEpoch, sessionId } from '../../workflows/contracts/ids.ts';
import type { Admission } from './admission.ts';
import type { Intake } from './intake.ts';

export interface SlotHolder {
  readonly expiresAtMs: number;
  readonly sweep: boolean;
  /** The run or sweep, by the end of its key; absent for a rollout by hand. */
  readonly share?: string | undefined;
}

/**
 * The slots for agents' sandboxes on one host. A slot is taken when a rollout is placed and released with its sandbox, so
 * capacity counts live sandboxes, not running activities.
 */
export interface Slots {
  readonly capacity: number;
  readonly taken: number;
  readonly takenBySweeps: number;
  /** Returns the number of slots that a run or sweep holds; without one, that rollouts by hand hold. */
  takenBy(owner: Owner): number;
  /** Takes a slot for an epoch of a rollout. Repeatable: an epoch has one slot. */
  take(epoch: RolloutEpoch, holder: SlotHolder): void;
  isTakenBy(epoch: RolloutEpoch): boolean;
  release(epoch: RolloutEpoch): void;
  /**
   * Takes a slot for each agent's sandbox of this host that `list` finds, except those released since the listing began: the
   * listing may be older than their removal, and nothing would release their slots again.
   */
  takeListed(
    list: () => Promise<readonly SandboxInfo[]>,
    isOwn?: (labels: SandboxLabels) => boolean,
  ): Promise<readonly SandboxInfo[]>;
  /** Whether a slot is free beside those taken, and a number of slots that are being taken. */
  isFree(beingTaken: number): boolean;
  /** Resolves at the next change: a slot was taken or released, or the machine admits more or less. */
  changed(signal: AbortSignal): Promise<void>;
  /** Lists the epochs whose slots are expired: those that were placed and never provisioned, or whose stages wait. */
  expired(nowMs: number): readonly RolloutEpoch[];
}

interface Bounds {
  readonly admission: Pick<Admission, 'admits' | 'placed' | 'onChange'>;
  readonly intake: Pick<Intake, 'closedBy' | 'onChange'>;
}

const unlimited: Bounds['admission'] = { admits: () => true, placed: () => undefined, onChange: () => undefined };
const alwaysOpen: Bounds['intake'] = { closedBy: null, onChange: () => undefined };

/** Creates the slots of a host. By default only their number bounds what the host takes. */
export function createSlots(
  capacity: number,
  { admission = unlimited, intake = alwaysOpen }: Partial<Bounds> = {},
): Slots {
  const holders = createHolders();
  const waiting = new Set<() => void>();
  /** The sessions of the epochs that were released during each listing in progress. */
  const listings = new Set<Set<string>>();

  const wake = (): void => {
    for (const resume of [...waiting]) resume();
  };
  admission.onChange(wake);
  intake.onChange(wake);

  return {
    capacity,
    isFree: (beingTaken) => {
      const used = holders.all.size + beingTaken;
      return used < capacity && intake.closedBy === null && admission.admits(used);
    },
    get taken() {
      return holders.all.size;
    },
    get takenBySweeps() {
      return [...holders.all.values()].filter(({ sweep }) => sweep).length;
    },
    takenBy: holders.countOf,
    take: (epoch, holder) => {
      if (!holders.all.has(sessionId(epoch))) admission.placed();
      holders.put(epoch, holder);
      wake();
    },
    isTakenBy: (epoch) => holders.all.has(sessionId(epoch)),
    release: (epoch) => {
      holders.remove(epoch);
      for (const released of listings) released.add(sessionId(epoch));
      wake();
    },
    takeListed: async (list, isOwn = () => true) => {
      const released = new Set<string>();
      listings.add(released);
      try {
        const found = await list();
        for (const { labels } of found) {
          const { purpose, expiresAtMs, sweep = false, share } = labels;
          if (purpose !== 'agent' || !isOwn(labels) || released.has(sessionId(labels))) continue;
          const { rollout, epoch } = labels;
          holders.put({ rollout, epoch }, { expiresAtMs, sweep, share });
        }
        return found;
      } finally {
        listings.delete(released);
        wake();
      }
    },
    changed: (signal) =>
      new Promise((resolve, reject) => {
        const settle = (finish: () => void): void => {
          waiting.delete(change);
          signal.removeEventListener('abort', abort);
          finish();
        };
        const change = (): void => settle(resolve);
        const abort = (): void => settle(() => reject(signal.reason));
        if (signal.aborted) return reject(signal.reason);
        waiting.add(change);
        signal.addEventListener('abort', abort, { once: true });
      }),
    expired: (nowMs) =>
      [...holders.all.values()].filter(({ expiresAtMs }) => expiresAtMs < nowMs).map(({ epoch }) => epoch),
  };
}

type Owner = Pick<SlotHolder, 'share' | 'sweep'>;

/** The holders of slots, and their number for each run and sweep, which placement compares at every change. */
function createHolders() {
  const all = new Map<string, SlotHolder & { readonly epoch: RolloutEpoch }>();
  const counts = new Map<string, number>();
  const keyOf = ({ share, sweep }: Owner): string => `${sweep ? 'sweep' : 'run'} ${share ?? ''}`;
  const countOf = (owner: Owner): number => counts.get(keyOf(owner)) ?? 0;
  const count = (owner: Owner, change: 1 | -1): void => {
    const sum = countOf(owner) + change;
    if (sum === 0) counts.delete(keyOf(owner));
    else counts.set(keyOf(owner), sum);
  };
  const remove = (epoch: RolloutEpoch): void => {
    const holder = all.get(sessionId(epoch));
    if (holder === undefined) return;
    all.delete(sessionId(epoch));
    count(holder, -1);
  };
  return {
    all: all as ReadonlyMap<string, SlotHolder & { readonly epoch: RolloutEpoch }>,
    countOf,
    remove,
    put(epoch: RolloutEpoch, holder: SlotHolder): void {
      remove(epoch);
      all.set(sessionId(epoch), { ...holder, epoch });
      count(holder, 1);
    },
  };
}
