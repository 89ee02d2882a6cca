/**
 * The port: an isolated place where an agent or an evaluation runs. Two siblings satisfy it, `docker` and `local`,
 * and one contract suite (test/infra/sandbox/contract.ts) holds both to what is promised here.
 *
 * Contract:
 * - Every effect is idempotent by a deterministic key: a sandbox by its name, a detached process by its `key`.
 * - A detached process survives the death of whoever started it; any provider instance on the same host can pick it up.
 * - Claims, results and logs lie outside the reach of what runs inside.
 * - No network. The only way out is the gateway's unix socket under `/gw`.
 * - What fails outside the sandbox throws a `SandboxFailure`; what the code inside does is data or a `FileRefused`.
 */
import type { SandboxKind } from '../../workflows/contracts/rollout.ts';
import type { FileTree } from './files.ts';
import type { ImageName, ImageRequest, ReportImage } from './image.ts';

export type { SandboxKind };

/** `agent`: an unprivileged uid under which the policy's processes run. `grader`: owns `/tests` and `/logs/verifier`. */
export type Account = 'agent' | 'grader';

export type SandboxPurpose = 'agent' | 'evaluation';

export interface SandboxLabels {
  readonly stack: string;
  readonly run: string;
  readonly rollout: string;
  readonly epoch: number;
  readonly purpose: SandboxPurpose;
  /** It counts against the share of sweeps. */
  readonly sweep?: true;
  readonly expiresAtMs: number;
}

/** A host directory that appears inside, always read-only: the agents' runtimes. */
export interface SandboxMount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: true;
}

export interface SandboxSpec {
  /** Deterministic; letters, digits, `_`, `.` and `-`, at most 128. */
  readonly name: string;
  /** The docker sibling's image; `local` offers the host's own tools instead. */
  readonly image: string;
  readonly labels: SandboxLabels;
  readonly cpus: number;
  readonly memoryMb: number;
  readonly diskMb: number;
  readonly pids: number;
  /** Where commands run and the agent may write; `/workspace` for every task so far. */
  readonly workdir: string;
  /** Host directory with the gateway's unix socket, mounted at `/gw`. */
  readonly gatewayDir?: string;
  readonly mounts: readonly SandboxMount[];
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
  /** Absolute directory inside; made if absent, its files replaced one by one. */
  readonly at: string;
  readonly owner: Account;
}

export interface Command {
  readonly argv: readonly [string, ...string[]];
  /** Default: the spec's workdir. */
  readonly cwd?: string;
  /** The whole environment, added to PATH, HOME and LANG. Never visible in any argv. */
  readonly env: Readonly<Record<string, string>>;
  readonly account: Account;
}

export interface ExecRequest extends Command {
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly stdin?: Uint8Array;
}

export interface ExecResult {
  /** 128 + n when ended by signal n. */
  readonly exitCode: number;
  readonly signal?: string;
  readonly timedOut: boolean;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** More output than `maxOutputBytes` was produced, and dropped. */
  readonly truncated: boolean;
}

export interface StartRequest extends Command {
  /** Names the process for ever within this sandbox: a second start of the same key starts nothing. */
  readonly key: string;
  /** Put only by the start that wins the claim, before the process runs. */
  readonly files?: readonly PutFiles[];
}

export type StartResult = 'started' | 'already-started';

/** The limit that a process ran into. All are the doing of what ran inside. */
export type LimitHit = 'memory' | 'pids' | 'disk';

export type ProcessStatus =
  | { readonly state: 'absent' }
  /** Claimed, but neither a result nor a live process: it may or may not have run. Never run it again. */
  | { readonly state: 'unknown'; readonly evidence: string }
  | { readonly state: 'running' }
  | { readonly state: 'exited'; readonly exitCode: number; readonly signal?: string; readonly limit?: LimitHit };

/** A log keeps this much of a process's output; the rest is read and dropped. */
export const logBytes = 16 * 2 ** 20;

export interface LogRange {
  readonly fromByte: number;
  readonly maxBytes: number;
}

export interface LogPart {
  readonly bytes: Buffer;
  /** Read on from here. */
  readonly nextByte: number;
  /** The log has its head and, once the process has ended, its tail: what lies between, beyond the cap, was dropped. */
  readonly truncated: boolean;
}

export interface Sandbox {
  readonly name: string;
  readonly kind: SandboxKind;
  readonly labels: SandboxLabels;
  /** Are its two accounts two uids, so that neither can touch files and processes of the other? */
  readonly twoUids: boolean;

  putFiles(files: PutFiles, signal: AbortSignal): Promise<void>;
  /** A regular file, without following symlinks: missing, too large or no such file is a `FileRefused`. */
  readFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer>;
  /** A short command in the foreground; it does not survive its caller. */
  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult>;

  /** A detached process; stdout and stderr go to one log. */
  start(request: StartRequest, signal: AbortSignal): Promise<StartResult>;
  status(key: string): Promise<ProcessStatus>;
  /**
   * Returns when the process has ended, or after `timeoutMs` with its status then. Pure observation, except that
   * disk and memory limits which no kernel enforces here are watched meanwhile. Aborting stops watching, kills nothing.
   */
  wait(key: string, options: WaitOptions, signal: AbortSignal): Promise<ProcessStatus>;
  readLog(key: string, range: LogRange): Promise<LogPart>;
  /** Ends the process of this key and everything it left behind in its group. Repeatable. */
  kill(key: string): Promise<void>;
  /** Ends every process of an account, stragglers and daemons included. */
  killProcesses(account: Account): Promise<void>;
  diskUsage(): Promise<{ readonly usedMb: number; readonly limitMb: number }>;
}

export interface WaitOptions {
  readonly timeoutMs: number;
  /** MB that the process did not make: they don't count against the sandbox's disk. Default 0. */
  readonly diskBeforeMb?: number;
}

/** What a task asks of the place it runs in. */
export interface SandboxNeeds {
  readonly task: string;
  /** Absolute paths that must exist under these very names, e.g. `/workspace` and `/tests`. */
  readonly paths: readonly string[];
  readonly image: string;
  /** Do the files that are to be worked on lie in the image? */
  readonly filesInImage: boolean;
  /** Where it may be had from where this host lacks it; absent: from nowhere. */
  readonly imageFrom?: ImageName['from'] | 'dockerfile';
}

/** Why this kind of sandbox can't run a task; names the task. */
export interface SandboxRefusal {
  readonly type: 'UnsupportedTask' | 'MissingImage';
  readonly message: string;
}

/** For `temper doctor`: what this provider gives here, and what it plainly does not protect. */
export interface SandboxDescription {
  readonly kind: SandboxKind;
  readonly ready: boolean;
  /** Not ready now, but maybe later while this process runs: whoever needs it asks again. */
  readonly mayComeUp?: true;
  readonly summary: string;
  readonly protects: readonly string[];
  readonly doesNotProtect: readonly string[];
}

export interface SandboxProvider {
  readonly kind: SandboxKind;
  /**
   * Pulls or builds an image where it is not there, and says what containers are made of. For the same one at the same time
   * this is done once. Where it can't be had: `MissingImage`, `ImageUnavailable`, or a `BuildFailure`.
   */
  prepare(image: ImageRequest, report: ReportImage, signal: AbortSignal): Promise<string>;
  /** What a prepared image is by its content: another one when its name stands for something else. */
  imageId(image: string): Promise<string>;
  /** Removes images that nobody has used for longest, of those that temper brought, beyond their share of the disk. */
  evictImages(signal: AbortSignal): Promise<readonly string[]>;
  /** Get-or-create by name. Same name but another rollout or epoch: `SandboxConflict`. */
  ensure(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox>;
  /** The live sandbox of this name, also one that another process made. */
  attach(name: string): Promise<Sandbox | undefined>;
  /** Kills everything inside, then removes. True if there was something. Repeatable. */
  remove(name: string): Promise<boolean>;
  /** Looks, changes nothing. */
  list(stack: string): Promise<readonly SandboxInfo[]>;
  /** Ends what interrupted removals left behind under no name that anybody asks for. One that resists keeps no other from it. */
  clearLeftovers(): Promise<void>;
  supports(needs: SandboxNeeds): Promise<SandboxRefusal | undefined>;
  describe(): Promise<SandboxDescription>;
  /** Lets go of connections and watchers; sandboxes live on. */
  close(): Promise<void>;
}
