import type { LimitReport } from '../infra/sandbox/docker/dropped-limits.ts';

interface Log {
  warn(fields: object, text: string): void;
}

export interface LoggedLimits extends LimitReport {
  /** Begins to write to a log, which must be open before the first sandbox is made. */
  logTo(log: Log): void;
}

/** Reports limits that the Docker daemon may not set, once for each kind of limit: the cause is the daemon, and not a task. */
export function createLimitReport(): LoggedLimits {
  const reported = new Set<string>();
  let log: Log | undefined;
  return {
    logTo(opened) {
      log = opened;
    },
    onDroppedLimits({ sandbox, service, ulimits }) {
      const fresh = ulimits.map(({ name }) => name).filter((name) => !reported.has(name));
      if (fresh.length === 0) return;
      for (const name of fresh) reported.add(name);
      const text = `the Docker daemon may not set limits that a task asks for (ulimits: ${fresh.join(', ')}), so its containers keep the daemon's own; give the daemon the capability CAP_SYS_RESOURCE`;
      log?.warn({ sandbox, service, ulimits }, text);
    },
  };
}
