import type { Duplex } from 'node:stream';
import type { Account } from '../sandbox.ts';
import type { Role } from './accounts.ts';

/** A shell script of temper's own that runs in a sandbox, with its arguments. */
export interface Script {
  readonly role: Role;
  readonly text: string;
  readonly args: readonly string[];
  /** The whole environment, apart from the PATH of temper's own programs. It may hold secrets, so it is never part of an argv. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: Uint8Array | undefined;
  /** The largest stdout and the largest stderr that are kept; the rest is read and dropped. Default: one megabyte each. */
  readonly maxOutputBytes?: number;
}

export interface ScriptResult {
  /** The exit code; 128 + n if the script was ended by signal n. */
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly truncated: boolean;
}

/** A script that was started and may outlive its connection. */
export interface StartedScript {
  /**
   * Resolves once the script no longer listens: with its exit code if it has ended, undefined if it runs without a connection
   * to its caller. Rejects with `NotStarted` if nothing of it has run.
   */
  readonly detached: Promise<number | undefined>;
  /** Stops listening and leaves the script running. */
  release(): void;
}

/**
 * The means to run scripts in one sandbox: all that a kind of sandbox needs to supply for `createShellSandbox`. Every call
 * throws a `SandboxFailure`: `SandboxLost` with its cause if the sandbox no longer runs, `SandboxUnavailable` if its provider
 * does not answer, `UnsupportedTask` if the image has no shell, `NotStarted` if nothing of a script has run.
 */
export interface Shell {
  /** The name of the sandbox. */
  readonly name: string;
  /**
   * The number of tasks that the kernel counts in the sandbox while nothing runs there but what its provider keeps and one
   * recorder. Null if the sandbox can't read such a count; what a process leaves behind is then always looked for.
   */
  readonly quietTasks: number | null;
  uidOf(role: Role): number;
  /** Runs a script to its end. An abort stops listening and leaves the script running. */
  run(script: Script, signal: AbortSignal): Promise<ScriptResult>;
  /** Runs a script to its end, passes its stdout on as it arrives, and returns its exit code. The script outlives its caller. */
  follow(script: Script, onStdout: (chunk: Buffer) => void, signal: AbortSignal): Promise<number>;
  /** Starts a script without waiting for its end. One with input has it before `detached` resolves. It outlives its caller. */
  start(script: Script): Promise<StartedScript>;
  /** Starts a script whose stdin and stdout are the returned stream; see `Sandbox.openStream`. */
  stream(script: Script): Promise<Duplex>;
  /** Ends every process of an account, even if they fight back. */
  endAll(account: Account): Promise<void>;
  /** Returns the size of what was written on the sandbox's disk since it was created. */
  writtenBytes(): Promise<number>;
  /** Makes this host the holder of the sandbox; see `Sandbox.hold`. Absent where nothing in the sandbox could refuse another host. */
  hold?(order: number, signal: AbortSignal): Promise<void>;
  /** Creates a directory of an account at a place where the account itself may not. */
  makeDirectory(path: string, owner: Account): Promise<void>;
}
