/** The same work, asked for by several at once, is done once: all see how far it is, and it goes on while one wants it. */
export interface Flights<Progress, Result> {
  join(
    key: string,
    work: (report: (progress: Progress) => void, signal: AbortSignal) => Promise<Result>,
    report: (progress: Progress) => void,
    signal: AbortSignal,
  ): Promise<Result>;
}

interface Flight<Progress, Result> {
  readonly controller: AbortController;
  readonly listeners: Set<(progress: Progress) => void>;
  readonly result: Promise<Result>;
  latest: Progress | null;
}

export function createFlights<Progress, Result>(): Flights<Progress, Result> {
  const flights = new Map<string, Flight<Progress, Result>>();

  function begin(key: string, work: Parameters<Flights<Progress, Result>['join']>[1]): Flight<Progress, Result> {
    const controller = new AbortController();
    const listeners = new Set<(progress: Progress) => void>();
    const say = (progress: Progress): void => {
      flight.latest = progress;
      for (const listener of listeners) listener(progress);
    };
    const result = Promise.resolve().then(() => work(say, controller.signal));
    const flight: Flight<Progress, Result> = { controller, listeners, result, latest: null };
    const forget = (): void => {
      if (flights.get(key) === flight) flights.delete(key);
    };
    result.then(forget, forget);
    flights.set(key, flight);
    return flight;
  }

  function leave(key: string, flight: Flight<Progress, Result>, reason: unknown): void {
    if (flight.listeners.size > 0) return;
    // Whoever asks from now on begins anew: this one is ending.
    if (flights.get(key) === flight) flights.delete(key);
    flight.controller.abort(reason);
  }

  return {
    async join(key, work, report, signal) {
      signal.throwIfAborted();
      const flight = flights.get(key) ?? begin(key, work);
      // A listener of its own, so that the same function may join twice.
      const listener = (progress: Progress): void => report(progress);
      flight.listeners.add(listener);
      if (flight.latest !== null) listener(flight.latest);
      const given = Promise.withResolvers<never>();
      const giveUp = (): void => given.reject(signal.reason);
      signal.addEventListener('abort', giveUp, { once: true });
      try {
        return await Promise.race([flight.result, given.promise]);
      } finally {
        signal.removeEventListener('abort', giveUp);
        flight.listeners.delete(listener);
        leave(key, flight, signal.reason);
      }
    },
  };
}
