/** The time that a lease lasts at least from the last use of its sandbox. */
export const leaseAheadMs = 600_000;

/** The lease of one sandbox, at whose end the server ends it. */
export interface Lease {
  readonly endMs: number;
  /** Lengthens the lease if it ends soon. Called with each use of the sandbox, so that a stage that waits keeps it. */
  keep(): Promise<void>;
}

export interface LeaseOptions {
  /** The end of the lease as it was asked for. */
  readonly endMs: number;
  /** Sets the end to this time from now. Returns false if the sandbox is gone, which its next use then explains. */
  readonly renew: (leaseMs: number) => Promise<boolean>;
}

export function createLease(options: LeaseOptions): Lease {
  let { endMs } = options;
  let renewing: Promise<void> | undefined;
  return {
    get endMs() {
      return endMs;
    },
    keep: async () => {
      const nowMs = Date.now();
      if (endMs - nowMs > leaseAheadMs / 2) return;
      renewing ??= options
        .renew(leaseAheadMs)
        .then((isThere) => {
          if (isThere) endMs = nowMs + leaseAheadMs;
        })
        .finally(() => {
          renewing = undefined;
        });
      await renewing;
    },
  };
}
