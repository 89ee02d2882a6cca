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
  /** The number of slots that each run and sweep holds, by the end of its key. */
  readonly heldBy: Readonly<Record<string, number>>;
  /** Takes a slot for an epoch of a rollout. Repeatable: an epoch has one slot. */
  take(epoch: RolloutEpoch, holder: SlotHolder): void;
  isTakenBy(epoch: RolloutEpoch): boolean;
  /** Releases the slot of an epoch, whose sandbox is removed unless `left` says that it may still be there. */
  release(epoch: RolloutEpoch, left?: 'left'): void;
  /**
   * Takes a slot for each agent's sandbox of this host that `list` finds, except those that were removed since the listing began
   * or a minute before that: lists lag, and nothing would release their slots again.
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

interface SlotOptions {
  readonly admission: Pick<Admission, 'admits' | 'placed' | 'onChange'>;
  readonly intake: Pick<Intake, 'closedBy' | 'onChange'>;
  /** A clock that never jumps. */
  readonly now: () => number;
}

const unlimited: SlotOptions['admission'] = { admits: () => true, placed: () => undefined, onChange: () => undefined };
const alwaysOpen: SlotOptions['intake'] = { closedBy: null, onChange: () => undefined };

/** Creates the slots of a host. By default only their number bounds what the host takes. */
export function createSlots(
  capacity: number,
  { admission = unlimited, intake = alwaysOpen, now = () => performance.now() }: Partial<SlotOptions> = {},
): Slots {
  const holders = createHolders();
  const removals = createRemovals(now);
  const waiting = new Set<() => void>();

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
    get heldBy() {
      const shares = [...holders.all.values()].flatMap(({ share }) => share ?? []);
      const byShare = Map.groupBy(shares, (share) => share);
      return Object.fromEntries(Array.from(byShare, ([share, held]) => [share, held.length]));
    },
    take: (epoch, holder) => {
      if (!holders.all.has(sessionId(epoch))) admission.placed();
      removals.delete(sessionId(epoch));
      holders.put(epoch, holder);
      wake();
    },
    isTakenBy: (epoch) => holders.all.has(sessionId(epoch)),
    release: (epoch, left) => {
      holders.remove(epoch);
      if (left === undefined) removals.add(sessionId(epoch));
      wake();
    },
    takeListed: async (list, isOwn = () => true) => {
      const listing = removals.beginListing();
      try {
        const found = await list();
        for (const { labels } of found) {
          const { purpose, expiresAtMs, sweep = false, share } = labels;
          if (purpose !== 'agent' || !isOwn(labels) || listing.lags(sessionId(labels))) continue;
          const { rollout, epoch } = labels;
          holders.put({ rollout, epoch }, { expiresAtMs, sweep, share });
        }
        return found;
      } finally {
        listing.end();
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

/** The time for which a list may still name a sandbox that was removed, twice as long as providers are known to need. */
const listLagMs = 60_000;

/** The sessions whose sandboxes were removed lately, for as long as a listing may name them. */
function createRemovals(now: () => number) {
  /** The times of the removals by session, the oldest first. */
  const removedAtMs = new Map<string, number>();
  const listings = new Set<{ readonly beganAtMs: number }>();
  const forget = (): void => {
    const oldest = Math.min(now(), ...Array.from(listings, ({ beganAtMs }) => beganAtMs)) - listLagMs;
    for (const [session, atMs] of removedAtMs) {
      if (atMs >= oldest) return;
      removedAtMs.delete(session);
    }
  };
  return {
    add(session: string): void {
      removedAtMs.delete(session);
      removedAtMs.set(session, now());
      forget();
    },
    delete: (session: string): void => void removedAtMs.delete(session),
    beginListing() {
      forget();
      const listing = { beganAtMs: now() };
      listings.add(listing);
      return {
        /** Whether the list may still name the sandbox of a session that was removed. */
        lags: (session: string): boolean =>
          (removedAtMs.get(session) ?? Number.NEGATIVE_INFINITY) >= listing.beganAtMs - listLagMs,
        end: () => void listings.delete(listing),
      };
    },
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
