import { type FailureType, TemperFailure } from '../../workflows/contracts/failures.ts';

export type SandboxFailureType = Extract<
  FailureType,
  | 'MissingImage'
  | 'ImageUnavailable'
  | 'UnsupportedTask'
  | 'SandboxLost'
  | 'SandboxUnavailable'
  | 'SandboxConflict'
  | 'DiskFull'
  | 'HostFenced'
  | 'Internal'
>;

/**
 * The way a sandbox was lost, as far as its provider can prove it. `evicted`: the machine needed its resources; `preempted`: a more
 * urgent workload needed its place; `deadline`: its time to live at the provider was over.
 */
export type LossCause = LossInside | LossOutside;

/** Losses that what ran in the sandbox has caused. `out-of-memory` and `out-of-disk`: it exceeded the sandbox's own limit. */
type LossInside = 'ended-inside' | 'out-of-memory' | 'out-of-disk';
type LossOutside =
  | 'absent'
  | 'removed'
  | 'killed-outside'
  | 'evicted'
  | 'preempted'
  | 'node-lost'
  | 'deadline'
  | 'unknown';

const inside: ReadonlySet<LossCause | undefined> = new Set(['ended-inside', 'out-of-memory', 'out-of-disk']);

export interface SandboxFailureDetails extends ErrorOptions {
  /** The message of the daemon or the kernel, for the reader of the failure. */
  readonly evidence?: string;
  readonly loss?: LossCause;
}

/** A failure of the sandbox itself, as opposed to what runs in it. */
export class SandboxFailure extends TemperFailure {
  readonly evidence: string | undefined;
  readonly loss: LossCause | undefined;

  constructor(type: SandboxFailureType, message: string, details: SandboxFailureDetails = {}) {
    super(type, details.evidence ? `${message} (${details.evidence})` : message, { cause: details.cause });
    this.name = 'SandboxFailure';
    this.evidence = details.evidence;
    this.loss = details.loss;
  }
}

/** A refusal that no wait changes: an operator has to, and then starts the host again. */
export class LastingRefusal extends SandboxFailure {
  constructor(message: string, details: SandboxFailureDetails = {}) {
    super('SandboxUnavailable', message, details);
  }
}

/** A command of which nothing has run, since its sandbox or the machine has no room for it. */
export class NotStarted extends SandboxFailure {}

/** Returns whether what ran in a sandbox has ended it, which is scored. Every other loss has evidence from outside. */
export function wasEndedInside(error: unknown): error is SandboxFailure {
  return error instanceof SandboxFailure && inside.has(error.loss);
}

/** A failed build of the task's Dockerfile. `log` is the builder's output, without its middle if it is long. */
export class BuildFailure extends TemperFailure {
  readonly log: Buffer;

  constructor(message: string, log: Buffer, options?: ErrorOptions) {
    super('BuildFailed', message, options);
    this.log = log;
  }
}

/**
 * `outside`: the path leaves its tree, passes through a symlink, or is closed to its owner. `not-a-file`: a directory, FIFO, device
 * or socket.
 */
export type FileRefusedReason = 'missing' | 'outside' | 'not-a-file' | 'too-large';

/** A file inside a sandbox that can't be read or written as requested. The caller knows whose fault that is. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused';
  readonly reason: FileRefusedReason;
  readonly path: string;

  constructor(reason: FileRefusedReason, path: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
    this.path = path;
  }
}

export function isFileRefused(error: unknown, reason: FileRefusedReason): boolean {
  return error instanceof FileRefused && error.reason === reason;
}

/** The `code` of a Node system error, such as `ENOENT`. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
