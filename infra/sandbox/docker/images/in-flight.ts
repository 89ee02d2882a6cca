/**
 * Work that several callers may request at the same time and that is done once: every caller receives its progress, and it is
 * aborted when the last of them has given up.
 */
export interface InFlight<Progress, Result> {
  /** Joins the running work of this key, or starts it. */
  join(
    key: string,
    work: (report: (progress: Progress) => void, signal: AbortSignal) => Promise<Result>,
    report: (progress: Progress) => void,
    signal: AbortSignal,
  ): Promise<Result>;
}

interface Shared<Progress, Result> {
  readonly controller: AbortController;
  readonly listeners: Set<(progress: Progress) => void>;
  readonly result: Promise<Result>;
  latest: Progress | null;
}

export function createInFlight<Progress, Result>(): InFlight<Progress, Result> {
  const running = new Map<string, Shared<Progress, Result>>();

  function start(key: string, work: Parameters<InFlight<Progress, Result>['join']>[1]): Shared<Progress, Result> {
    const controller = new AbortController();
    const listeners = new Set<(progress: Progress) => void>();
    const publish = (progress: Progress): void => {
      shared.latest = progress;
      for (const listener of listeners) listener(progress);
    };
    const result = Promise.resolve().then(() => work(publish, controller.signal));
    const shared: Shared<Progress, Result> = { controller, listeners, result, latest: null };
    const forget = (): void => {
      if (running.get(key) === shared) running.delete(key);
    };
    result.then(forget, forget);
    running.set(key, shared);
    return shared;
  }

  function leave(key: string, shared: Shared<Progress, Result>, reason: unknown): void {
    if (shared.listeners.size > 0) return;
    // A later caller must start fresh work, because this one is ending.
    if (running.get(key) === shared) running.delete(key);
    shared.controller.abort(reason);
  }

  return {
    async join(key, work, report, signal) {
      signal.throwIfAborted();
      const shared = running.get(key) ?? start(key, work);
      // Each caller has a wrapper of its own, so that the same function may join twice.
      const listener = (progress: Progress): void => report(progress);
      shared.listeners.add(listener);
      if (shared.latest !== null) listener(shared.latest);
      const given = Promise.withResolvers<never>();
      const giveUp = (): void => given.reject(signal.reason);
      signal.addEventListener('abort', giveUp, { once: true });
      try {
        return await Promise.race([shared.result, given.promise]);
      } finally {
        signal.removeEventListener('abort', giveUp);
        shared.listeners.delete(listener);
        leave(key, shared, signal.reason);
      }
    },
  };
}
