import type { Worker, WorkerOptions } from '@temporalio/worker';
import { endLeftEffects } from '../activities/effects.ts';

/** The workers of one process. They end together: if one fails, the process ends, and the supervisor starts a fresh one. */
export interface WorkerGroup {
  /** Starts a worker, and returns the function that stops it alone. */
  start(options: WorkerOptions): Promise<() => void>;
  shutdown(): void;
  /** Resolves when all workers have ended after a shutdown; rejects then if one failed. */
  readonly ended: Promise<void>;
}

type Run = Pick<Worker, 'run' | 'getState'>;

/** The time that a worker has between its failure and its end. */
const failedMs = 10_000;
/** The time that the other workers of a group have after that. */
const groupFailedMs = 20_000;

/**
 * Runs a worker to its end. One that failed may never end: if the server refuses its polls, such as with an API key that has
 * expired, the SDK waits for ever for what the worker still had to do.
 */
export async function endOf(worker: Run, limitMs: number = failedMs): Promise<void> {
  const stuck = Promise.withResolvers<never>();
  let failedAtMs: number | null = null;
  const timer = setInterval(() => {
    if (worker.getState() !== 'FAILED') return;
    failedAtMs ??= performance.now();
    if (performance.now() - failedAtMs < limitMs) return;
    stuck.reject(new Error('a worker failed and did not end; its log says why it failed'));
  }, limitMs / 10);
  try {
    await Promise.race([worker.run(), stuck.promise]);
  } finally {
    clearInterval(timer);
  }
}

export function createWorkerGroup(create: (options: WorkerOptions) => Promise<Worker>): WorkerGroup {
  const workers = new Set<Worker>();
  const ended = Promise.withResolvers<void>();
  const failures: unknown[] = [];
  let stopping = false;

  const settle = (): void => {
    if (!stopping || workers.size > 0) return;
    if (failures.length > 0) ended.reject(failures[0]);
    else ended.resolve();
  };

  function stop(worker: Worker): void {
    if (worker.getState() === 'RUNNING') worker.shutdown();
  }

  function shutdown(): void {
    stopping = true;
    for (const worker of workers) stop(worker);
    endLeftEffects();
    settle();
  }

  return {
    async start(options) {
      const worker = await create(options);
      let wanted = true;
      workers.add(worker);
      endOf(worker)
        .catch((error: unknown) => {
          failures.push(error);
          // The others may be unable to end, too.
          setTimeout(() => ended.reject(error), groupFailedMs).unref();
        })
        .finally(() => {
          workers.delete(worker);
          if (wanted || failures.length > 0) shutdown();
          else settle();
        });
      if (stopping) stop(worker);
      return () => {
        wanted = false;
        stop(worker);
      };
    },
    shutdown,
    ended: ended.promise,
  };
}
