/**
 * The port through which a process starts commands. Its implementations: `direct` forks the process itself, which suits a
 * short-lived one; `through-helper` lets a small child fork instead, since a fork copies the page tables of its caller.
 */
export interface Spawner {
  /**
   * Starts a command whose output is collected. It runs in a process group of its own, ends with this process if the command
   * line asks the kernel for it, and its working directory is `/`.
   */
  start(command: CollectedCommand): RunningCommand;
  /** Starts a command in a session of its own that outlives this process. Resolves once it has closed its stdout. */
  launch(command: Program): Promise<void>;
  /** Ends what `start` started, and releases all resources. It can still be used afterwards. */
  close(): Promise<void>;
}

export interface Program {
  readonly argv: readonly string[];
  /** The whole environment. It never appears in an argv. */
  readonly env: Readonly<Record<string, string>>;
}

export interface CollectedCommand extends Program {
  readonly stdin?: Uint8Array | undefined;
  /** The number of bytes that are kept of stdout and of stderr; the rest is read and dropped. */
  readonly maxOutputBytes: number;
  /** An existing file that the command finds open for writing as its descriptor 5. */
  readonly reportFile?: string;
}

export interface RunningCommand {
  /** Resolves once the command has ended and its output is closed. Rejects if it could not be started. */
  readonly ended: Promise<EndedCommand>;
  /** Kills the command's process group. */
  kill(): void;
}

export interface EndedCommand {
  /** The exit code; 128 + n if the command was ended by signal n. */
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** Whether output was dropped. */
  readonly truncated: boolean;
}

/** The helper process ended while it ran commands, so their ends are unknown. The next command starts a new helper. */
export class HelperLostError extends Error {
  override readonly name = 'HelperLostError';

  constructor(cause?: unknown) {
    super('the helper process that starts commands has ended; its commands ended with it, and a new one is started', {
      cause,
    });
  }
}
