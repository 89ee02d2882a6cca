export interface ProcessIdentity {
  readonly pid: number;
  /** An opaque start time; undefined if the process had already ended. */
  readonly startedAt: string | undefined;
}

/** Identifies a process by its pid and start time, since pids are reused. */
export function processIdentity(pid: number): ProcessIdentity;

/** Whether exactly this process still runs. A zombie does not. */
export function isRunning(identity: ProcessIdentity): boolean;
