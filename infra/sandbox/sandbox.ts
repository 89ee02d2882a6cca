import type { Duplex } from 'node:stream';
import type { SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import type { HostEntry, Ulimit } from '../../workflows/contracts/task.ts';
import type { SandboxChanges } from './changes.ts';
import type { FileTree } from './files.ts';
import type { ImageRequest, ReportImage } from './image.ts';
import type { MemoryDirectory } from './memory-directory.ts';
import type { MountedProgram, SandboxMount } from './mount.ts';
import type { SandboxNeeds, UnsupportedReason } from './needs.ts';
import type { Beside } from './service.ts';

/**
 * The port: an isolated environment in which an agent or an evaluation runs. Each kind is one implementation, and one
 * contract suite (test/infra/sandbox/contract.ts) holds all of them to these promises:
 * - Every effect is idempotent by a deterministic key: a sandbox by its name, a detached process by its `key`.
 * - A detached process survives the death of the process that started it; any other instance of its provider can resume it.
 * - Claims, results and logs are out of reach of what runs inside.
 * - There is no network. The only way out is the gateway's unix socket under `/gw`, or a stream that the host opens.
 * - A failure outside the sandbox throws a `SandboxFailure`; what the code inside causes is data or a `FileRefused`.
 */

export type { MountedProgram, SandboxKind, SandboxMount, SandboxNeeds, UnsupportedReason };

/** `agent`: an unprivileged uid under which the policy's processes run. `grader`: owns `/tests` and `/logs/verifier`. */
export type Account = 'agent' | 'grader';

export type SandboxPurpose = 'agent' | 'evaluation';

/** The way of an agent's model calls: the gateways' unix sockets, mounted, or a stream that the host opens to its sandbox. */
export type ChannelKind = 'socket' | 'stream';

export interface SandboxLabels {
  readonly stack: string;
  readonly run: string;
  readonly rollout: string;
  readonly epoch: number;
  readonly purpose: SandboxPurpose;
  /** Whether the sandbox counts against the capacity share of sweeps. */
  readonly sweep?: true;
  /** The way of its agent's model calls, which every process that works with it must know. Default: `socket`. */
  readonly channel?: ChannelKind;
  /** The run or sweep whose share of the slots it takes, by the end of its key. */
  readonly share?: string;
  readonly expiresAtMs: number;
  /** The fencing token of the host that made the sandbox. */
  readonly fence?: string;
}

export interface SandboxSpec {
  /** Deterministic; letters, digits, `_`, `.` and `-`, at most 128. */
  readonly name: string;
  /** The image of a Docker sandbox; a local sandbox has the host's own tools instead. */
  readonly image: string;
  readonly labels: SandboxLabels;
  readonly cpus: number;
  readonly memoryMb: number;
  readonly diskMb: number;
  readonly pids: number;
  /** The number of the host's GPUs that are passed through; absent for none. Only with `givesGpus`. */
  readonly gpus?: number;
  /** The types of which these GPUs must be. Default: any. */
  readonly gpuTypes?: readonly string[];
  /** The size of `/dev/shm`. Default: 64 MB. Only with `givesTmpfs`. */
  readonly sharedMemoryMb?: number;
  /** The directories that are in memory. Only with `givesTmpfs`. */
  readonly tmpfs?: readonly MemoryDirectory[];
  /** Names of hosts beside those of its services. Only with `givesHosts`. */
  readonly hosts?: readonly HostEntry[];
  /** The limits of its processes. Sandboxes other than Docker's have those of their machine. */
  readonly ulimits?: readonly Ulimit[];
  /** The directory in which commands run and the agent may write, usually `/workspace`. */
  readonly workdir: string;
  /** Whether agent and grader are root of the container, with the capabilities that programs expect of it. Only with `givesRoot`. */
  readonly root?: true;
  /** Host directory with the gateways' unix sockets for this sandbox, mounted read-only at `/gw`. Only with the channel `socket`. */
  readonly gatewayDir?: string;
  readonly mounts: readonly SandboxMount[];
  /** Files that are in the sandbox as soon as it runs. */
  readonly files?: readonly PutFiles[];
  /** Containers that live as long as the sandbox, and that share its network device. Only with `runsServices`. */
  readonly beside?: Beside;
}

/** A sandbox to be made. */
export interface SandboxOrder extends SandboxSpec {
  /** Receives what the sandbox waits for, where it is the sandbox's node that gets the image. */
  readonly report?: ReportImage;
}

export interface SandboxInfo {
  readonly name: string;
  readonly kind: SandboxKind;
  readonly labels: SandboxLabels;
  readonly createdAtMs: number;
  readonly running: boolean;
}

export interface PutFiles {
  readonly tree: FileTree;
  /** Absolute directory inside. It is created if absent; existing files are replaced one by one. */
  readonly at: string;
  readonly owner: Account;
}

export interface Command {
  readonly argv: readonly [string, ...string[]];
  /** Default: the spec's workdir. */
  readonly cwd?: string;
  /** The whole environment, apart from PATH, HOME and LANG. Never visible in an argv. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Set for a command that enters the image's environment, by `byImage`, `inImage` or `enterImage`. By default it has temper's own:
   * its programs are found where no agent can put one, and it gets no variable of the image.
   */
  readonly entersImage?: true | undefined;
  readonly account: Account;
}

export interface ExecRequest extends Command {
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly stdin?: Uint8Array | undefined;
}

export interface ExecResult {
  /** The exit code; 128 + n if the command was ended by signal n. */
  readonly exitCode: number;
  readonly signal?: string;
  readonly timedOut: boolean;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** Whether output beyond `maxOutputBytes` was dropped. */
  readonly truncated: boolean;
}

export interface StartRequest extends Command {
  /** The process's permanent name within this sandbox: a second start with the same key has no effect. */
  readonly key: string;
  /** Files that the one effective start writes before the process runs. */
  readonly files?: readonly PutFiles[];
}

export type StartResult = 'started' | 'already-started';

/**
 * The limit that a process exceeded. All limits are the responsibility of what ran inside. `time`: a caller noted that before it
 * ended the process.
 */
export type LimitHit = 'memory' | 'pids' | 'disk' | 'time';

export type ProcessStatus =
  | { readonly state: 'absent' }
  /** Claimed, but with neither a result nor a live process: it may have run, so it must never be started again. */
  | { readonly state: 'unknown'; readonly evidence: string }
  | { readonly state: 'running' }
  | { readonly state: 'exited'; readonly exitCode: number; readonly signal?: string; readonly limit?: LimitHit };

/** Size of the log that is kept of a process's output; the rest is read and dropped. */
export const logBytes = 16 * 2 ** 20;

export interface LogRange {
  readonly fromByte: number;
  readonly maxBytes: number;
}

export interface LogPart {
  readonly bytes: Buffer;
  /** Start of the next range. */
  readonly nextByte: number;
  /** Whether the middle of the output was dropped because it exceeded the cap. The tail is there once the process has ended. */
  readonly truncated: boolean;
}

export interface Sandbox {
  readonly name: string;
  readonly kind: SandboxKind;
  readonly labels: SandboxLabels;
  /** Whether its two accounts are two uids, so that neither can touch the other's files and processes. */
  readonly twoUids: boolean;

  putFiles(files: PutFiles, signal: AbortSignal): Promise<void>;
  /** Reads a regular file without following symlinks. Throws `FileRefused` if it is missing, too large or of another kind. */
  readFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer>;
  /** Runs a short command in the foreground; it does not survive its caller. */
  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult>;
  /**
   * Runs a command whose stdin and stdout are the returned stream; its stderr is dropped. A stream that is ended or destroyed
   * ends the command's stdin, at which the command has to end. It closes with an error if the connection breaks, and with none
   * when the command has ended. Nothing is buffered beyond what the stream's reader and the command take. Absent where the
   * provider's `channels` have no `stream`.
   */
  openStream?(command: Command, signal: AbortSignal): Promise<Duplex>;

  /** Starts a detached process, with stdout and stderr in one log. */
  start(request: StartRequest, signal: AbortSignal): Promise<StartResult>;
  status(key: string): Promise<ProcessStatus>;
  /**
   * Waits until the process has ended, at most `timeoutMs`, and returns its status. Meanwhile it enforces the disk and memory limits
   * that the kernel does not enforce here. An abort stops the wait and leaves the process running.
   */
  wait(key: string, options: WaitOptions, signal: AbortSignal): Promise<ProcessStatus>;
  /**
   * Returns the time since the start of a process by the boot clock of its machine, which no change of the wall clock moves; 0 if it
   * was never started. A process that is root of its sandbox may forge it.
   */
  ageMs(key: string, signal: AbortSignal): Promise<number>;
  readLog(key: string, range: LogRange): Promise<LogPart>;
  /**
   * Notes that the time of a process is over, before it is ended, so that its status then has the limit `time`. Has no effect on a
   * process that has ended, or in a sandbox that has no room for a command.
   */
  noteTimeOver(key: string): Promise<void>;
  /** Ends the process of this key and everything it left in its group. Repeatable. */
  kill(key: string): Promise<void>;
  /** Ends every process of an account, including daemons. */
  killProcesses(account: Account): Promise<void>;
  /** Makes this host the only one that the sandbox obeys, or throws `HostFenced`. Absent where nothing in it could refuse a host. */
  hold?(order: number, signal: AbortSignal): Promise<void>;
  diskUsage(): Promise<{ readonly usedMb: number; readonly limitMb: number }>;
  /** The way of all its changes into another sandbox. Absent where the provider's `carriesChanges` is false. */
  readonly changes?: SandboxChanges;
}

export interface WaitOptions {
  readonly timeoutMs: number;
  /** Disk use in MB from before the process, which does not count against the sandbox's limit. Default 0. */
  readonly diskBeforeMb?: number;
}

/** Description for `temper doctor` of what a kind of sandbox protects on this host, and what it does not. */
export interface SandboxDescription {
  readonly kind: SandboxKind;
  readonly ready: boolean;
  /** Set if the kind is not ready now but may become so while this process runs; callers then check again. */
  readonly mayComeUp?: true;
  readonly summary: string;
  readonly protects: readonly string[];
  readonly doesNotProtect: readonly string[];
}

export interface SandboxProvider {
  readonly kind: SandboxKind;
  /** The origin of the programs in its sandboxes: the task's image, or this host, whatever the image. */
  readonly programs: 'image' | 'host';
  /** Whether the commands in one of its sandboxes share processes and network, so that what one leaves behind serves another. */
  readonly sharesProcesses: boolean;
  /** Whether an agent can be root of its sandbox, without rights on the host. */
  readonly givesRoot: boolean;
  /** Set if its sandboxes can have other containers beside them. */
  readonly runsServices?: true;
  /** Whether sandboxes can have GPUs of a host that has some. */
  readonly givesGpus?: true;
  /** Set if sandboxes can have directories in memory, and a size of `/dev/shm`. */
  readonly givesTmpfs?: true;
  /** Set if sandboxes can know further names of hosts. */
  readonly givesHosts?: true;
  /** Whether all changes of one of its sandboxes, wherever they are, can be carried into another. */
  readonly carriesChanges: boolean;
  /** The ways of model calls that its sandboxes offer. They have `openStream` where `stream` is one of them. */
  readonly channels: readonly [ChannelKind, ...ChannelKind[]];
  /**
   * Pulls or builds an image unless this host has it, and returns its name. Concurrent calls for one image share the work. Throws
   * `MissingImage`, `ImageUnavailable` or a `BuildFailure`.
   */
  prepare(image: ImageRequest, report: ReportImage, signal: AbortSignal): Promise<string>;
  /** Returns the id of a prepared image's content; it changes when the name stands for another image. */
  imageId(image: string): Promise<string>;
  /** Removes the least recently used of temper's own images beyond their share of the disk, and returns their names. */
  evictImages(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Gets or creates a sandbox by its name, with the containers beside it, all of which are ready. Throws `SandboxConflict` if another
   * rollout or epoch has that name, and `SetupFailed` for a container beside it that fails.
   */
  ensure(spec: SandboxOrder, signal: AbortSignal): Promise<Sandbox>;
  /** Finds the live sandbox of this name, even if another process made it. */
  attach(name: string): Promise<Sandbox | undefined>;
  /** Kills everything inside and removes the sandbox. Returns whether there was one. Repeatable. */
  remove(name: string): Promise<boolean>;
  /**
   * The longest time to live that the provider gives a sandbox; absent if it sets no limit. A kind with such a limit, or whose
   * machines are not this host, ends a sandbox by itself at its `expiresAtMs`.
   */
  readonly longestLifetimeMs?: number;
  /**
   * Moves that end, as far as the provider allows, and returns whether there is such a sandbox. Absent if only the reaper ends
   * sandboxes, or if the end is fixed when the sandbox is made.
   */
  renew?(name: string, expiresAtMs: number): Promise<boolean>;
  /** Lists a stack's sandboxes. A list may lag by half a minute. */
  list(stack: string): Promise<readonly SandboxInfo[]>;
  /** Finishes interrupted removals whose names are already gone. One failure does not block the others. */
  clearLeftovers(): Promise<void>;
  /** Returns the reason why this kind can't run a task; undefined if it can. */
  supports(needs: SandboxNeeds): Promise<UnsupportedReason | undefined>;
  describe(): Promise<SandboxDescription>;
  /** Closes connections and watchers; sandboxes stay. */
  close(): Promise<void>;
}
