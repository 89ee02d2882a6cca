import type { LaneWidth } from './lane-width.ts';

/**
 * A lane bounds how many stages of one kind run at once on a host. Stages reach it from task queues of its own, whose
 * workers reserve a place before they poll, or within an activity of another stage, if a place is free right then.
 */
export interface Lane extends LaneQueue {
  readonly width: Pick<LaneWidth, 'most' | 'now' | 'halved'>;
  readonly running: number;
  /** Returns one more task queue of this lane. The lane itself is the first. */
  addQueue(): LaneQueue;
  /** Gives a stage within another activity a place until `leave`, unless it would have to wait. Returns whether it has one. */
  tryEnter(): boolean;
  leave(): void;
  /** Runs a stage that has a place, and tells the width how it ended. */
  run<Result>(stage: () => Promise<Result>, isOverload: (error: unknown) => boolean): Promise<Result>;
}

/** One of a lane's own task queues. */
export interface LaneQueue {
  /** Resolves when a stage may be taken from the task queue; its place is reserved until `settle`. */
  reserve(signal: AbortSignal): Promise<void>;
  tryReserve(): boolean;
  settle(): void;
  /**
   * Resolves when a stage that was taken from the task queue may run, until the returned function is called. It waits only if
   * stages from elsewhere have filled the lane since the worker began to poll.
   */
  begin(signal: AbortSignal): Promise<() => void>;
}

export function createLane(width: LaneWidth, clock = Date.now): Lane {
  const waiting = createWaiting();
  const places: Places = { taken: 0, entered: 0, placed: 0 };
  let running = 0;

  // A worker that polls has reserved places in which nothing runs yet. A stage that is here already does not wait for those.
  const tryEnter = (): boolean => {
    if (!tryPlace(places, width)) return false;
    places.entered += 1;
    return true;
  };
  const addQueue = (): LaneQueue => createQueue(places, width, waiting);

  return {
    width,
    get running() {
      return running;
    },
    ...addQueue(),
    addQueue,
    tryEnter,
    leave: () => {
      places.placed -= 1;
      places.entered -= 1;
      waiting.wake();
    },
    async run(stage, isOverload) {
      const beganAtMs = clock();
      running += 1;
      try {
        const result = await stage();
        width.ended('well', beganAtMs);
        return result;
      } catch (error) {
        if (isOverload(error)) width.ended('overloaded', beganAtMs);
        throw error;
      } finally {
        running -= 1;
        waiting.wake();
      }
    },
  };
}

/** The counts that all queues of a lane share. */
interface Places {
  /** Stages that were taken from the lane's own queues and have not ended. */
  taken: number;
  entered: number;
  /** Stages that may run: those that have entered, and those from the lane's own queues that have begun. */
  placed: number;
}

function tryPlace(places: Places, width: LaneWidth): boolean {
  if (places.placed >= width.now) return false;
  places.placed += 1;
  return true;
}

function createQueue(places: Places, width: LaneWidth, waiting: WaitingList): LaneQueue {
  let reserved = 0;
  let takenHere = 0;
  // A place that another queue's worker has reserved to poll may stay unused for long, so only its stages count.
  const tryReserve = (): boolean => {
    if (reserved + places.entered + places.taken - takenHere >= width.now) return false;
    reserved += 1;
    return true;
  };
  const count = (change: 1 | -1): void => {
    places.taken += change;
    takenHere += change;
    if (change < 0) waiting.wake();
  };
  return {
    reserve: (signal) => waiting.untilTaken(tryReserve, signal),
    tryReserve,
    settle: () => {
      reserved -= 1;
      waiting.wake();
    },
    async begin(signal) {
      count(1);
      try {
        await waiting.untilTaken(() => tryPlace(places, width), signal);
      } catch (error) {
        count(-1);
        throw error;
      }
      return () => {
        places.placed -= 1;
        count(-1);
      };
    },
  };
}

/** The requests for a place, in their order. */
interface WaitingList {
  /** Resolves once `take` has succeeded. It is tried at once, and at each `wake`. */
  untilTaken(take: () => boolean, signal: AbortSignal): Promise<void>;
  wake(): void;
}

function createWaiting(): WaitingList {
  const waiting = new Set<{ readonly take: () => boolean; readonly go: () => void }>();
  return {
    wake() {
      for (const one of [...waiting]) {
        if (!one.take()) continue;
        waiting.delete(one);
        one.go();
      }
    },
    untilTaken: (take, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        if (take()) return resolve();
        const go = (): void => {
          signal.removeEventListener('abort', abort);
          resolve();
        };
        const one = { take, go };
        const abort = (): void => {
          waiting.delete(one);
          reject(signal.reason);
        };
        waiting.add(one);
        signal.addEventListener('abort', abort, { once: true });
      }),
  };
}
