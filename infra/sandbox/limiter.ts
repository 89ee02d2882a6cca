import PQueue from 'p-queue';

/** Runs a limited number of operations at a time; the rest wait in order. */
export interface Limiter {
  /**
   * Runs the operation once there is capacity. The signal ends only the wait: a started operation keeps its capacity until it
   * has ended.
   */
  run<Result>(operation: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
}

export function createLimiter(concurrency: number): Limiter {
  const queue = new PQueue({ concurrency: Math.max(1, concurrency) });
  return {
    async run(operation, signal) {
      signal.throwIfAborted();
      // p-queue would also release the capacity of a running operation whose signal aborts, so it gets a signal of the wait alone.
      const wait = new AbortController();
      const giveUp = (): void => wait.abort(signal.reason);
      const stopWaiting = (): void => signal.removeEventListener('abort', giveUp);
      signal.addEventListener('abort', giveUp, { once: true });
      const start = () => {
        stopWaiting();
        return operation();
      };
      return queue.add(start, { signal: wait.signal }).finally(stopWaiting);
    },
  };
}
