import type { Ulimit } from '../../../workflows/contracts/task.ts';

/** Limits of processes that a container does without, because the daemon may not set them. */
export interface DroppedLimits {
  readonly sandbox: string;
  /** The name of the service; null for the sandbox's own container. */
  readonly service: string | null;
  readonly ulimits: readonly Ulimit[];
}

/** The receiver of such limits. */
export interface LimitReport {
  readonly onDroppedLimits: (dropped: DroppedLimits) => void;
}
