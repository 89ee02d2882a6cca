import type { LaneWidth } from './lane-width.ts';

/**
 * A lane bounds how many stages of one kind run at once on a host. Stages reach it from a task queue of its own, whose
 * worker reserves a place before it polls, or from another task queue, in which case they wait for a place themselves.
 */
export interface Lane {
  readonly width: Pick<LaneWidth, 'most' | 'now' | 'halved'>;
  readonly running: number;
  /** Resolves when a stage may be taken from the lane's own task queue; its place is reserved until `settle`. */
  reserve(signal: AbortSignal): Promise<void>;
  tryReserve(): boolean;
  settle(): void;
  /** Resolves when a stage that came from another task queue may run; it has a place until `leave`. */
  enter(signal: AbortSignal): Promise<void>;
  /** Gives a stage a place as `enter` does, unless it would have to wait. Returns whether it has one. */
  tryEnter(): boolean;
  leave(): void;
  /** Runs a stage that has a place, and tells the width how it ended. */
  run<Result>(stage: () => Promise<Result>, isOverload: (error: unknown) => boolean): Promise<Result>;
}

interface Waiting {
  readonly take: () => boolean;
  readonly go: () => void;
}

export function createLane(width: LaneWidth, clock = Date.now): Lane {
  const waiting = new Set<Waiting>();
  let reserved = 0;
  let entered = 0;
  let running = 0;

  const tryReserve = (): boolean => {
    if (reserved + entered >= width.now) return false;
    reserved += 1;
    return true;
  };
  // A worker that polls has reserved places in which nothing runs yet. A stage that is here already does not wait for those.
  const tryEnter = (): boolean => {
    if (Math.max(running, entered) >= width.now) return false;
    entered += 1;
    return true;
  };
  const wake = (): void => {
    for (const one of [...waiting]) {
      if (!one.take()) continue;
      waiting.delete(one);
      one.go();
    }
  };
  const untilTaken = (take: () => boolean, signal: AbortSignal): Promise<void> =>
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
    });

  return {
    width,
    get running() {
      return running;
    },
    reserve: (signal) => untilTaken(tryReserve, signal),
    tryReserve,
    settle: () => {
      reserved -= 1;
      wake();
    },
    enter: (signal) => untilTaken(tryEnter, signal),
    tryEnter,
    leave: () => {
      entered -= 1;
      wake();
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
        wake();
      }
    },
  };
}
