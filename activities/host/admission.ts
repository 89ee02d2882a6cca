import { type Amounts, kept } from '../../infra/machine/fit.ts';
import { type Level, type Resource, resources, scarcest } from '../../infra/machine/level.ts';

/** A resource of which too little is free for one more rollout. Memory and disk are in MB. */
export interface Shortage {
  readonly resource: Resource;
  readonly free: number;
  /** The amount that has to be free before the host takes rollouts again. */
  readonly needed: number;
  /** The source of the limit, such as `ulimit -n`. */
  readonly limit: string;
}

/** Decides whether this machine has room for one more rollout, beside the number of slots. */
export interface Admission {
  /** The reason why the host takes no rollouts now; null if it takes them. */
  readonly shortage: Shortage | null;
  /** Whether one more rollout may be placed on a host that has `taken` already. */
  admits(taken: number): boolean;
  /** Counts a rollout that was placed and does not use its resources yet. */
  placed(): void;
  /** Notes what a rollout may use of this machine, since the next one will probably use the same. */
  expect(need: Amounts): void;
  /** Calls the listener at each change of the shortage. */
  onChange(listener: (shortage: Shortage | null) => void): void;
  /** Stops reading the machine's levels. */
  close(): void;
}

const readEveryMs = 1_000;
/** Time after which a placed rollout is assumed to use what it needs, so that the levels show it. */
const settleMs = 3_000;
/** The share of its need that a placed rollout is assumed to take meanwhile. Few agents use all that they may. */
const pendingShare = 1 / 16;
/** The largest share of the machine that has to be free for one more rollout, for tasks that may use all of a machine. */
const mostOfTotal = 1 / 8;
/** The factor by which more must be free for the host to resume than for it to hold back, so that it does not alternate. */
const resumeFactor = 1.5;

export interface AdmissionOptions {
  /** The amounts that the first rollout may use. */
  readonly need: Amounts;
  readonly readLevels: () => readonly Level[];
  /** Interval of the readings. Only tests set it. */
  readonly everyMs?: number;
}

/** Creates an admission that reads the machine's levels every second. */
export function createAdmission({ need: first, readLevels, everyMs = readEveryMs }: AdmissionOptions): Admission {
  const listeners: ((shortage: Shortage | null) => void)[] = [];
  let need = first;
  let levels = readLevels();
  let shortage: Shortage | null = null;
  let placedAtMs: number[] = [];

  const update = (): void => {
    const before = shortage;
    const oldestMs = Date.now() - settleMs;
    placedAtMs = placedAtMs.filter((atMs) => atMs > oldestMs);
    shortage = findShortage(levels, { need, pending: placedAtMs.length, holding: before?.resource ?? null });
    if (before?.resource !== shortage?.resource) for (const listener of listeners) listener(shortage);
  };
  const timer = setInterval(() => {
    levels = readLevels();
    update();
  }, everyMs);
  timer.unref();
  update();

  return {
    get shortage() {
      return shortage;
    },
    // A host without rollouts takes one unless its disk is full: otherwise a small machine would never run any.
    admits: (taken) => shortage === null || (taken === 0 && shortage.resource !== 'disk'),
    placed: () => {
      placedAtMs.push(Date.now());
      update();
    },
    expect: (next) => {
      need = next;
    },
    onChange: (listener) => {
      listeners.push(listener);
    },
    close: () => clearInterval(timer),
  };
}

interface Demand {
  readonly need: Amounts;
  /** Rollouts that were placed and that the levels do not show yet. */
  readonly pending: number;
  /** The resource for which the host holds back already. */
  readonly holding: Resource | null;
}

/** Returns the first resource that does not suffice for one more rollout. */
function findShortage(levels: readonly Level[], { need, pending, holding }: Demand): Shortage | null {
  for (const resource of resources) {
    const level = scarcest(levels, resource, 'free');
    if (level === undefined) continue;
    const one = Math.min(need[resource], level.total * mostOfTotal);
    const free = level.free - pending * one * pendingShare;
    const resumeAt = kept[resource] + one * resumeFactor;
    const least = resource === holding ? resumeAt : kept[resource] + one;
    if (free < least) return { resource, free: Math.round(free), needed: Math.round(resumeAt), limit: level.limit };
  }
  return null;
}
