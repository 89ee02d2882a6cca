/**
 * Requests that wait for a slot, first come, first served. Not a p-queue: that one runs a fixed number of tasks, whereas here
 * the head of the queue waits until a slot fits its size, and slots also appear when a probe finds a replica.
 */
export interface WaitingQueue<Request, Slot> {
  readonly length: number;
  /** Rejects with the signal's reason, or with the error that `rejectAll` is called with. */
  wait(request: Request, signal: AbortSignal): Promise<Slot>;
  /** Assigns slots in order until one request finds none. No request overtakes, so that a large one gets its turn. */
  assign(take: (request: Request) => Slot | null): void;
  rejectAll(failure: Error): void;
}

interface Waiter<Request, Slot> {
  readonly request: Request;
  readonly resolve: (slot: Slot) => void;
  readonly reject: (reason: unknown) => void;
}

export function createWaitingQueue<Request, Slot>(): WaitingQueue<Request, Slot> {
  let waiters: Waiter<Request, Slot>[] = [];
  return {
    get length() {
      return waiters.length;
    },
    async wait(request, signal) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<Slot>();
      const waiter = { request, resolve, reject };
      const leave = (): void => {
        waiters = waiters.filter((other) => other !== waiter);
        reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      waiters.push(waiter);
      try {
        return await promise;
      } finally {
        signal.removeEventListener('abort', leave);
      }
    },
    assign(take) {
      for (let first = waiters[0]; first !== undefined; first = waiters[0]) {
        const slot = take(first.request);
        if (slot === null) return;
        waiters.shift();
        first.resolve(slot);
      }
    },
    rejectAll(failure) {
      const rejected = waiters;
      waiters = [];
      for (const { reject } of rejected) reject(failure);
    },
  };
}
