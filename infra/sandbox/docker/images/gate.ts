/** Lets so many work at once; the others wait in their order. */
export interface Gate {
  readonly width: number;
  run<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
}

export function createGate(width: number): Gate {
  const waiting = new Set<() => void>();
  let free = width;

  const enter = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const grant = (): void => {
        signal.removeEventListener('abort', leave);
        free -= 1;
        resolve();
      };
      const leave = (): void => {
        waiting.delete(grant);
        reject(signal.reason);
      };
      signal.throwIfAborted();
      if (free > 0) return grant();
      waiting.add(grant);
      signal.addEventListener('abort', leave, { once: true });
    });

  return {
    width,
    async run(work, signal) {
      await enter(signal);
      try {
        return await work();
      } finally {
        free += 1;
        const [next] = waiting;
        if (next !== undefined) {
          waiting.delete(next);
          next();
        }
      }
    },
  };
}
