import type { FleetSlots } from './fleet-slots.ts';
import { createPlacementOrder, type Placed, type PlacementQueue } from './placement-order.ts';
import type { Slots } from './slots.ts';
import type { SweepShare } from './sweep-share.ts';

/**
 * The time that a poll stays without a task before the server is asked whether any waits: a backlog that is spread over the
 * partitions of a queue may take longer to reach a poll. The count may be wrong, so a poll of some seconds is proof in itself.
 */
const askAfterMs = 200;
const emptyAfterMs = 5_000;
/**
 * The time after which a queue counts as no longer polled. A worker that has just got a rollout asks for its next turn a
 * moment later, and must not lose it to another queue meanwhile.
 */
const goneAfterMs = 1_000;
/** The interval at which a queue's turn is checked again if no slot changes: training may have ended. */
const checkAgainMs = 1_000;
/**
 * The shortest and the longest time for which a queue is left to other hosts. It doubles with each rollout in a row that belongs to
 * them.
 */
const leftMs = { first: 1_000, longest: 30_000 } as const;

/**
 * The turn of a queue to poll for rollouts. A poll takes no slot: if it did, the queues would keep slots from each other while
 * all are empty. So two may get a rollout for the same free slot, and the second rollout then waits in `placeRollout` for the
 * next slot.
 */
export interface PlacementTurn {
  /** Resolves when this queue may poll. */
  next(signal: AbortSignal): Promise<PlacementPoll>;
}

/** One poll of a placement queue, from its permission until its rollout is placed or it has ended without one. */
export interface PlacementPoll {
  /** Records that the poll brought a rollout, which is placed now. */
  placing(): void;
  ended(): void;
}

/** A rollout that waits on this host for a slot. */
export interface WaitingRollout {
  /** Whether nothing waits in the queues that come first, here or at the server. */
  isNext(): Promise<boolean>;
  ended(): void;
}

/**
 * The turns of a host's placement queues. The run that holds the smallest part of the slots for its weight comes first, so
 * that the slots are held by weight once each has been released. Runs come before sweeps. What one does not use, another may.
 * A run whose part of the whole fleet is less than a slot gets its part of the placements instead.
 */
export interface PlacementTurns {
  /** Tells the slots of all hosts. Until then a host counts as the only one. */
  inFleet(fleet: FleetSlots): void;
  /** Returns the turn of a queue; a second call for the same name changes its weight. */
  of(queue: PlacementQueue): PlacementTurn;
  /** Forgets a queue that is polled no more. */
  remove(name: string): void;
  /**
   * Leaves the queue of a run or a sweep to other hosts for a while: a rollout of it asks for a kind of sandbox that only they have.
   * Otherwise the run, which holds nothing here, would always come first, and the others would wait for what it declines.
   */
  leaveToOthers(name: string): void;
  waitsFor(name: string): WaitingRollout;
}

export interface PlacementTurnsOptions {
  readonly slots: Slots;
  readonly share: SweepShare;
  /** Returns about how many rollouts wait in a queue at the server. */
  backlogOf(queue: string): Promise<number>;
}

export function createPlacementTurns({ slots, share, backlogOf }: PlacementTurnsOptions): PlacementTurns {
  const queues = new Map<string, Polls>();
  const all = (): Polls[] => [...queues.values()];
  const order = createPlacementOrder(slots);
  const { comesBefore } = order;
  const follow = (): void => order.follow(all().map(({ queue }) => queue));

  /**
   * Returns whether a slot is free beside those of the rollouts that are placed now, and of the polls of this very queue. A
   * rollout that waits here does not count if this queue comes before its own.
   */
  function isFree(polls: Polls): boolean {
    const taking = all().map((one) => one.placing.size - (comesBefore(polls, one) ? one.waiting : 0));
    return slots.isFree(polls.open.size + taking.reduce((sum, count) => sum + count, 0));
  }

  /** Returns whether nothing waits in the queues that come first. One that is not polled at all is left out. */
  async function isTurnOf(polls: Polls): Promise<boolean> {
    for (const other of all()) {
      if (other === polls || other.isLeft() || !comesBefore(other, polls)) continue;
      if (isPolled(other) && !(await provedEmpty(other, backlogOf))) return false;
    }
    return true;
  }

  async function mayPoll(polls: Polls): Promise<boolean> {
    // The answer of the server takes a moment, in which another queue may have taken the slot.
    if (polls.isLeft() || !isFree(polls) || !(await isTurnOf(polls)) || !isFree(polls)) return false;
    if (!polls.queue.sweep) return true;
    const begun = all().filter(({ queue }) => queue.sweep);
    // While the server is away the share is unknown, and polling would fail anyway.
    return share.allowsMore(begun.reduce((sum, one) => sum + one.placing.size, polls.open.size)).catch(() => false);
  }

  const changed = (atMostMs: number, signal: AbortSignal): Promise<void> =>
    slots.changed(AbortSignal.any([signal, AbortSignal.timeout(atMostMs)])).catch(() => signal.throwIfAborted());

  return {
    inFleet: order.inFleet,
    of(queue) {
      const polls = queues.get(queue.name) ?? createPolls(queue, all);
      polls.queue = queue;
      queues.set(queue.name, polls);
      follow();
      return {
        async next(signal) {
          polls.asking += 1;
          try {
            while (!(await mayPoll(polls))) await changed(isFree(polls) ? askAfterMs : checkAgainMs, signal);
            return polls.start();
          } finally {
            polls.asking -= 1;
            polls.seenAtMs = Date.now();
          }
        },
      };
    },
    remove(name) {
      queues.delete(name);
      follow();
    },
    leaveToOthers: (name) => queues.get(name)?.leave(),
    waitsFor(name) {
      const polls = queues.get(name);
      if (polls === undefined) return { isNext: async () => true, ended: () => {} };
      polls.stay();
      polls.waiting += 1;
      return {
        isNext: async () =>
          all().every((other) => other.waiting === 0 || !comesBefore(other, polls)) && (await isTurnOf(polls)),
        ended: () => {
          polls.waiting -= 1;
        },
      };
    },
  };
}

const isPolled = ({ asking, open, seenAtMs }: Polls): boolean =>
  asking > 0 || open.size > 0 || Date.now() - seenAtMs < goneAfterMs;

/** Returns whether a poll has proved that nothing waits in its queue. */
async function provedEmpty({ queue, open }: Polls, backlogOf: PlacementTurnsOptions['backlogOf']): Promise<boolean> {
  for (const poll of open.values()) {
    const ageMs = Date.now() - poll.sinceMs;
    if (ageMs < askAfterMs) return false;
    if (poll.empty || ageMs >= emptyAfterMs) return true;
    if (Date.now() - poll.askedAtMs < askAfterMs) return false;
    poll.askedAtMs = Date.now();
    poll.empty = (await backlogOf(queue.name).catch(() => 1)) === 0;
    return poll.empty;
  }
  return false;
}

/** A poll that has brought no rollout yet. */
interface OpenPoll {
  readonly sinceMs: number;
  /** The time of the last question to the server whether any rollout waits, and its answer. */
  askedAtMs: number;
  empty: boolean;
}

/** The times at which a queue is left to other hosts. */
interface Absence {
  isLeft(): boolean;
  leave(): void;
  /** Records a rollout that can stay. */
  stay(): void;
}

function createAbsence({ share }: PlacementQueue): Absence {
  const { first, longest } = leftMs;
  let untilMs = Number.NEGATIVE_INFINITY;
  let inARow = 0;
  return {
    isLeft: () => Date.now() < untilMs,
    leave() {
      // The rollouts of a common queue ask for several kinds.
      if (share === undefined) return;
      untilMs = Date.now() + Math.min(first * 2 ** inARow, longest);
      inARow += 1;
    },
    stay() {
      inARow = 0;
    },
  };
}

/** The polls of one queue. */
interface Polls extends Placed, Absence {
  queue: PlacementQueue;
  /** The number of callers that wait for the queue's turn. */
  asking: number;
  /** The time at which a poll or a caller was last seen to end. */
  seenAtMs: number;
  /** The polls that have brought no rollout yet. */
  readonly open: ReadonlyMap<PlacementPoll, OpenPoll>;
  /** The polls whose rollouts are placed now. */
  readonly placing: ReadonlySet<PlacementPoll>;
  /** The number of rollouts that wait on this host for a slot. */
  waiting: number;
  missed: number;
  start(): PlacementPoll;
}

function createPolls(queue: PlacementQueue, all: () => readonly Polls[]): Polls {
  const open = new Map<PlacementPoll, OpenPoll>();
  const placing = new Set<PlacementPoll>();
  const polls: Polls = {
    queue,
    asking: 0,
    seenAtMs: Number.NEGATIVE_INFINITY,
    open,
    placing,
    waiting: 0,
    missed: 0,
    ...createAbsence(queue),
    start() {
      const poll: PlacementPoll = {
        placing() {
          open.delete(poll);
          placing.add(poll);
          for (const other of all()) if (other.queue.sweep === polls.queue.sweep) other.missed += 1;
          polls.missed = 0;
          polls.seenAtMs = Date.now();
        },
        ended() {
          polls.seenAtMs = Date.now();
          open.delete(poll);
          placing.delete(poll);
        },
      };
      open.set(poll, { sinceMs: Date.now(), askedAtMs: 0, empty: false });
      return poll;
    },
  };
  return polls;
}
