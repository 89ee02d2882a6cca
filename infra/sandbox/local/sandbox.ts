import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
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
import { ownerOf, runsAsRoot } from './accounts.ts';
import type { Confinement } from './confinement.ts';
import { joinGroup } from './control-group.ts';
import { endAccounts, endProcess } from './end-processes.ts';
import { splitEnvironment } from './environment.ts';
import { runForeground } from './foreground.ts';
import { controlOf, executionsOf, homeOf, insidePath, type SandboxDirectory, treeOf } from './layout.ts';
import { claim, commandPid, nextChange, pidIn, readLogFile, recordLimit, statusOf } from './processes.ts';
import { diskUsageMb, residentMb } from './resource-usage.ts';
import { readFileSafely, withDirectory, writeFileSafely } from './safe-files.ts';
import { supervise } from './supervisor.ts';

/** The first measurement comes this late, so that short commands never pay for one. */
const firstMeasurementMs = 500;
const measureEveryMs = 1_000;
const diskUsageTimeoutMs = 60_000;
/**
 * The number of failed measurements in a row that ends a process. An overloaded host fails once or twice; a tree that can't be
 * measured this often was made that way on purpose.
 */
const maxUnmeasured = 3;

/** Creates a handle of a local sandbox. Its state is in the sandbox's directory, so handles can be dropped at any time. */
export function createLocalSandbox(directory: SandboxDirectory, confinement: Confinement): Sandbox {
  return new LocalSandbox(directory, confinement);
}

class LocalSandbox implements Sandbox {
  readonly kind = 'local';
  readonly name: string;
  readonly labels: SandboxLabels;
  readonly twoUids: boolean;
  readonly #directory: SandboxDirectory;
  readonly #confinement: Confinement;
  #unmeasured = 0;

  constructor(directory: SandboxDirectory, confinement: Confinement) {
    const { spec, accounts } = directory;
    this.name = spec.name;
    this.labels = spec.labels;
    this.twoUids = accounts.agent.uid !== accounts.grader.uid;
    this.#directory = directory;
    this.#confinement = confinement;
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
    return runForeground({ argv: joined, env, pidFile, end, timeoutMs, maxOutputBytes, stdin }, signal);
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
    await supervise({ ...this.#confine(request, true), control, logBytes, uid, group });
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
    const deadlineMs = Date.now() + timeoutMs;
    let measureAtMs = Date.now() + firstMeasurementMs;
    for (;;) {
      signal.throwIfAborted();
      const directory = this.#processOf(key);
      const status = this.#statusOf(key);
      const nowMs = Date.now();
      if (status.state !== 'running' || nowMs >= deadlineMs) return status;
      if (nowMs >= measureAtMs) {
        await this.#enforceLimits(directory, diskBeforeMb, signal);
        measureAtMs = Date.now() + measureEveryMs;
      }
      await nextChange(directory, Math.min(deadlineMs, measureAtMs) - nowMs, signal);
    }
  }

  async readLog(key: string, range: LogRange): Promise<LogPart> {
    return readLogFile(this.#processOf(key), range, logBytes);
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
    const usedMb = await diskUsageMb(treeOf(this.#directory), AbortSignal.timeout(diskUsageTimeoutMs));
    if (usedMb === undefined) {
      const text = `could not measure the disk use of sandbox ${this.name} within ${diskUsageTimeoutMs / 1_000} s`;
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
      throw cause;
    }
  }

  #requireExists(): void {
    if (existsSync(controlOf(this.#directory))) return;
    const text = `sandbox ${this.name} no longer exists at ${this.#directory.path}: it was removed; the rollout continues in a new one`;
    throw new SandboxFailure('SandboxLost', text, { loss: 'removed' });
  }

  #confine({ argv, cwd, env, account }: Command, detached: boolean) {
    const sandbox = this.#directory;
    const { outer, inner } = splitEnvironment(env, homeOf(account));
    const confined = { sandbox, account, argv, cwd: cwd ?? sandbox.spec.workdir, innerEnv: inner, detached };
    return { argv: this.#confinement.commandLine(confined), env: outer };
  }

  /** Ends a process that exceeds a limit which the kernel does not enforce here. */
  async #enforceLimits(directory: string, diskBeforeMb: number, signal: AbortSignal): Promise<void> {
    const pid = commandPid(directory);
    if (pid === undefined) return;
    const limits = this.#directory.spec;
    const overMemory = !this.#directory.group && residentMb(pid) > limits.memoryMb;
    if (!overMemory && !(await this.#isOverDisk(diskBeforeMb, signal))) return;
    recordLimit(directory, overMemory ? 'memory' : 'disk');
    await endAccounts(this.#directory, ['agent']);
    await endProcess(directory);
  }

  async #isOverDisk(diskBeforeMb: number, signal: AbortSignal): Promise<boolean> {
    const usedMb = await diskUsageMb(treeOf(this.#directory), signal);
    this.#unmeasured = usedMb === undefined ? this.#unmeasured + 1 : 0;
    return usedMb === undefined
      ? this.#unmeasured >= maxUnmeasured
      : usedMb > this.#directory.spec.diskMb + diskBeforeMb;
  }
}
