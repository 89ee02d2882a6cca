/** What fails at the sandbox boundary: `SandboxFailure` is the place's fault, `FileRefused` is about what lies in it. */
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

/** How a lost sandbox went. Only `ended-inside` can be the work of what ran in it; the others are evidence from outside. */
export type LossCause = 'absent' | 'removed' | 'killed-outside' | 'ended-inside' | 'unknown';

export interface SandboxFailureDetails extends ErrorOptions {
  /** What the daemon or the kernel said, for a person who reads the failure. */
  readonly evidence?: string;
  readonly loss?: LossCause;
}

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

/** The task's Dockerfile could not be built; `log` is what the builder said, its middle left out where it is long. */
export class BuildFailure extends TemperFailure {
  readonly log: Buffer;

  constructor(message: string, log: Buffer, options?: ErrorOptions) {
    super('BuildFailed', message, options);
    this.log = log;
  }
}

/** `outside`: the path leaves its tree or passes through a symlink. `not-a-file`: a directory, FIFO, device or socket. */
export type FileRefusal = 'missing' | 'outside' | 'not-a-file' | 'too-large';

/** A file inside a sandbox is not what was expected. The caller knows whose doing it is. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused';
  readonly reason: FileRefusal;
  readonly path: string;

  constructor(reason: FileRefusal, path: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
    this.path = path;
  }
}

export function isFileRefused(error: unknown, reason: FileRefusal): boolean {
  return error instanceof FileRefused && error.reason === reason;
}

/** The `code` of a Node system error, `ENOENT` and the like. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
