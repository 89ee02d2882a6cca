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
  | 'Internal'
>;

/** The way a sandbox was lost. Only `ended-inside` can be caused by what ran in it; the others are evidence from outside. */
export type LossCause = 'absent' | 'removed' | 'killed-outside' | 'ended-inside' | 'unknown';

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

/** A failed build of the task's Dockerfile. `log` is the builder's output, without its middle if it is long. */
export class BuildFailure extends TemperFailure {
  readonly log: Buffer;

  constructor(message: string, log: Buffer, options?: ErrorOptions) {
    super('BuildFailed', message, options);
    this.log = log;
  }
}

/** `outside`: the path leaves its tree or passes through a symlink. `not-a-file`: a directory, FIFO, device or socket. */
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
