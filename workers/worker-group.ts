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
      const run = worker.run();
      run
        .catch((error: unknown) => failures.push(error))
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
