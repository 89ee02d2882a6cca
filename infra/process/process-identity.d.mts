export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque; undefined when the process had ended before it was asked. */
  readonly startedAt: string | undefined;
}

/** A pid alone is reused sooner or later; with its start time it names one process. */
export function processIdentity(pid: number): ProcessIdentity;

/** True while exactly this process runs. A zombie has ended. */
export function isRunning(identity: ProcessIdentity): boolean;
