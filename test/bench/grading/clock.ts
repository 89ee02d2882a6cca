/** Adds up the time that each kind of call takes, by name. */
export interface Clock {
  readonly spentMs: ReadonlyMap<string, number>;
  time<Result>(name: string, call: () => Promise<Result>): Promise<Result>;
  reset(): void;
}

export function createClock(): Clock {
  const spentMs = new Map<string, number>();
  return {
    spentMs,
    async time(name, call) {
      const startedAt = performance.now();
      try {
        return await call();
      } finally {
        spentMs.set(name, (spentMs.get(name) ?? 0) + performance.now() - startedAt);
      }
    },
    reset: () => spentMs.clear(),
  };
}
