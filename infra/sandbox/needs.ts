import type { ImageName } from './image.ts';

/** A task's requirements on its sandbox. */
export interface SandboxNeeds {
  readonly task: string;
  /** Absolute paths that must exist under these very names, e.g. `/workspace` and `/tests`. */
  readonly paths: readonly string[];
  readonly image: string;
  /** The time for which the sandbox must live; absent if it is not known yet. */
  readonly lifetimeMs?: number;
  /** Whether the image itself contains the files to be worked on. */
  readonly filesInImage: boolean;
  /** The number of GPUs that it is to have. Default: none. */
  readonly gpus?: number;
  /** The types that these GPUs may have. Default: any. */
  readonly gpuTypes?: readonly string[];
  /** The directories that it has in memory, and a size of `/dev/shm`, in words. Default: none. */
  readonly inMemory?: string;
  /** The names of hosts that it is to know. Default: none. */
  readonly hosts?: readonly string[];
  /** Whether the agent is to be root of its container. */
  readonly root?: boolean;
  /** The names of the containers beside it. */
  readonly services?: readonly string[];
  /** The source of an image that this host lacks; absent if it has none. */
  readonly imageFrom?: ImageName['from'] | 'dockerfile';
}

/** The reason why a kind of sandbox can't run a task; the message names the task. */
export interface UnsupportedReason {
  readonly type: 'UnsupportedTask' | 'MissingImage';
  readonly message: string;
}
