import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { HelperLostError, type Spawner } from '../../process/spawner/spawner.ts';
import type { SandboxChanges } from '../changes.ts';
import { SandboxFailure } from '../failure.ts';
import { relativeSegments } from '../files.ts';
import { killPid } from '../kill.ts';
import { requireKey } from '../names.ts';
import {
  type Account,
  type Command,
  type ExecRequest,
  type ExecResult,
  type LogPart,
  type LogRange,
  logBytes,
  type ProcessStatus,
  type PutFiles,
  type Sandbox,
  type SandboxLabels,
  type StartRequest,
  type StartResult,
  type WaitOptions,
} from '../sandbox.ts';
import { homeOf } from '../shell/accounts.ts';
import { ownerOf, runsAsRoot } from './accounts.ts';
import { createLocalChanges } from './changes.ts';
import type { Confinement } from './confinement.ts';
import { joinGroup } from './control-group.ts';
import { endAccounts, endProcess } from './end-processes.ts';
import { splitEnvironment } from './environment.ts';
import { runForeground } from './foreground.ts';
import { controlOf, executionsOf, insidePath, type SandboxDirectory, treeOf } from './layout.ts';
import { ageMs, claim, isRunning, pidIn, readLogFile, recordLimit, statusOf } from './processes.ts';
import { diskUsageMb } from './resource-usage.ts';
import { readFileSafely, withDirectory, writeFileSafely } from './safe-files.ts';
import { supervise } from './supervisor.ts';
import type { WatchedProcess, Watcher } from './watcher.ts';

/** Creates a handle of a local sandbox. Its state is in the sandbox's directory, so handles can be dropped at any time. */
export function createLocalSandbox(directory: SandboxDirectory, means: LocalMeans): Sandbox {
  return new LocalSandbox(directory, means);
}

/** The parts that all local sandboxes of a process share. */
export interface LocalMeans {
  readonly confinement: Confinement;
  readonly spawner: Spawner;
  readonly watcher: Watcher;
}

class LocalSandbox implements Sandbox {
  readonly kind = 'local';
  readonly name: string;
  readonly labels: SandboxLabels;
  readonly twoUids: boolean;
  readonly changes: SandboxChanges;
  readonly #directory: SandboxDirectory;
  readonly #means: LocalMeans;

  constructor(directory: SandboxDirectory, means: LocalMeans) {
    const { spec, accounts } = directory;
    this.name = spec.name;
    this.labels = spec.labels;
    this.twoUids = accounts.agent.uid !== accounts.grader.uid;
    this.changes = this.#explainedChanges(createLocalChanges(directory));
    this.#directory = directory;
    this.#means = means;
  }

  putFiles({ tree, at, owner }: PutFiles, signal: AbortSignal): Promise<void> {
    return this.#explained(async () => {
      const account = ownerOf(this.#directory.accounts, owner);
      withDirectory(treeOf(this.#directory), relativeSegments(insidePath(at)), account, (directory) => {
        for (const [path, entry] of tree) writeFileSafely(directory, path, entry, account);
      });
    }, signal);
  }

  readFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
    return this.#explained(async () => readFileSafely(treeOf(this.#directory), insidePath(path), maxBytes), signal);
  }

  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    return this.#explained(async () => {
      const result = await this.#run(request, signal);
      // A removal ends the command too, so this is a result only if the sandbox still exists.
      if (result.exitCode !== 0) this.#requireExists();
      return result;
    }, signal);
  }

  #run(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    const { timeoutMs, maxOutputBytes, stdin } = request;
    const pidFile = join(executionsOf(this.#directory), `${request.account}-${randomUUID()}`);
    const end = (): void => {
      const pid = pidIn(pidFile);
      if (pid !== undefined) killPid(pid);
    };
    const { argv, env } = this.#confine(request, false);
    const joined = joinGroup(this.#directory.group, argv);
    const command = { argv: joined, env, pidFile, end, timeoutMs, maxOutputBytes, stdin };
    return runForeground(this.#means.spawner, command, signal);
  }

  start(request: StartRequest, signal: AbortSignal): Promise<StartResult> {
    return this.#explained(() => this.#startOnce(request, signal), signal);
  }

  async #startOnce(request: StartRequest, signal: AbortSignal): Promise<StartResult> {
    const control = claim(controlOf(this.#directory), requireKey(request.key), request.account);
    if (control === undefined) return 'already-started';
    for (const files of request.files ?? []) await this.putFiles(files, signal);
    const { accounts, group } = this.#directory;
    const uid = runsAsRoot() ? ownerOf(accounts, request.account).uid : undefined;
    await supervise(this.#means.spawner, { ...this.#confine(request, true), control, logBytes, uid, group });
    return 'started';
  }

  async status(key: string): Promise<ProcessStatus> {
    return this.#statusOf(key);
  }

  wait(key: string, options: WaitOptions, signal: AbortSignal): Promise<ProcessStatus> {
    return this.#explained(() => this.#untilEnded(key, options, signal), signal);
  }

  async #untilEnded(
    key: string,
    { timeoutMs, diskBeforeMb = 0 }: WaitOptions,
    signal: AbortSignal,
  ): Promise<ProcessStatus> {
    const directory = this.#processOf(key);
    const deadlineMs = performance.now() + timeoutMs;
    const watched = this.#watched(directory, diskBeforeMb);
    for (;;) {
      signal.throwIfAborted();
      const status = this.#statusOf(key);
      const leftMs = deadlineMs - performance.now();
      if (status.state !== 'running' || leftMs <= 0) return status;
      await this.#means.watcher.untilEnded(watched, leftMs, signal);
    }
  }

  /** Describes a process to the watcher, with the limits that the kernel does not enforce here. */
  #watched(directory: string, diskBeforeMb: number): WatchedProcess {
    const { memoryMb, diskMb } = this.#directory.spec;
    return {
      directory,
      tree: treeOf(this.#directory),
      diskMb: diskMb + diskBeforeMb,
      memoryMb: this.#directory.group ? null : memoryMb,
      end: async (limit) => {
        recordLimit(directory, limit);
        await endAccounts(this.#directory, ['agent']);
        await endProcess(directory);
      },
    };
  }

  async ageMs(key: string): Promise<number> {
    return ageMs(this.#processOf(key));
  }

  async readLog(key: string, range: LogRange): Promise<LogPart> {
    return readLogFile(this.#processOf(key), range, logBytes);
  }

  async noteTimeOver(key: string): Promise<void> {
    const directory = this.#processOf(key);
    if (isRunning(directory)) recordLimit(directory, 'time');
  }

  async kill(key: string): Promise<void> {
    await endProcess(this.#processOf(key));
  }

  async killProcesses(account: Account): Promise<void> {
    this.#requireExists();
    await endAccounts(this.#directory, [account]);
  }

  async diskUsage(): Promise<{ readonly usedMb: number; readonly limitMb: number }> {
    this.#requireExists();
    const tree = treeOf(this.#directory);
    const usedMb = (await diskUsageMb(this.#means.spawner, [tree])).get(tree);
    if (usedMb === undefined) {
      this.#requireExists();
      const text = `could not measure the disk use of sandbox ${this.name}: it is very large, or the host is overloaded`;
      throw new SandboxFailure('SandboxUnavailable', text);
    }
    return { usedMb, limitMb: this.#directory.spec.diskMb };
  }

  /** Checks that the sandbox exists: while it is being removed, a process looks as if it had never run. */
  #statusOf(key: string): ProcessStatus {
    const status = statusOf(this.#processOf(key));
    if (status.state !== 'running') this.#requireExists();
    return status;
  }

  #processOf(key: string): string {
    this.#requireExists();
    return join(controlOf(this.#directory), requireKey(key));
  }

  /** Explains a failed call: as the loss of the sandbox if its directory is gone, otherwise as the failure of this call. */
  async #explained<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    this.#requireExists();
    signal.throwIfAborted();
    try {
      return await call();
    } catch (cause) {
      signal.throwIfAborted();
      this.#requireExists();
      if (cause instanceof HelperLostError) throw new SandboxFailure('SandboxUnavailable', cause.message, { cause });
      throw cause;
    }
  }

  #explainedChanges({ note, read, write, changedPrograms }: SandboxChanges): SandboxChanges {
    return {
      note: (signal) => this.#explained(() => note(signal), signal),
      read: (leftOut, signal) => this.#explained(() => read(leftOut, signal), signal),
      write: (changes, signal) => this.#explained(() => write(changes, signal), signal),
      changedPrograms,
    };
  }

  #requireExists(): void {
    if (existsSync(controlOf(this.#directory))) return;
    const text = `sandbox ${this.name} no longer exists at ${this.#directory.path}: it was removed; the rollout continues in a new one`;
    throw new SandboxFailure('SandboxLost', text, { loss: 'removed' });
  }

  #confine(command: Command, detached: boolean) {
    const { argv, cwd, account } = command;
    const sandbox = this.#directory;
    const { outer, inner } = splitEnvironment(command, homeOf(account));
    const confined = { sandbox, account, argv, cwd: cwd ?? sandbox.spec.workdir, innerEnv: inner, detached };
    return { argv: this.#means.confinement.commandLine(confined), env: outer };
  }
}
