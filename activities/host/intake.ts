/**
 * Whether a host takes new work: rollouts, images and evaluations. It takes none while it is drained, or may not act. The
 * stages of its own rollouts continue.
 */
export interface Intake {
  /** The reason why the host takes no new work; null if it takes some. */
  readonly closedBy: string | null;
  close(reason: string): void;
  open(): void;
  /** Calls the listener at each change. */
  onChange(listener: () => void): void;
  /** Resolves when the host takes new work. */
  opened(signal: AbortSignal): Promise<void>;
}

export function createIntake(): Intake {
  const listeners = new Set<() => void>();
  let closedBy: string | null = null;

  function set(reason: string | null): void {
    if (closedBy === reason) return;
    closedBy = reason;
    for (const listener of [...listeners]) listener();
  }

  return {
    get closedBy() {
      return closedBy;
    },
    close: set,
    open: () => set(null),
    onChange: (listener) => void listeners.add(listener),
    opened: (signal) =>
      new Promise((resolve, reject) => {
        const settle = (finish: () => void): void => {
          listeners.delete(look);
          signal.removeEventListener('abort', abort);
          finish();
        };
        const look = (): void => {
          if (closedBy === null) settle(resolve);
        };
        const abort = (): void => settle(() => reject(signal.reason));
        if (signal.aborted) return reject(signal.reason);
        listeners.add(look);
        signal.addEventListener('abort', abort, { once: true });
        look();
      }),
  };
}
