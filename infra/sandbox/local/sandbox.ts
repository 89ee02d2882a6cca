/** One local sandbox, as the port sees it. Holds no state that matters: everything is in the sandbox's directory. */
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
import { readBeneath, withDirectory, writeBeneath } from './beneath.ts';
import type { Confinement } from './confinement.ts';
import { joinGroup } from './control-group.ts';
import { endAccounts, endProcess } from './ending.ts';
import { splitEnvironment } from './environment.ts';
import { runForeground } from './foreground.ts';
import { controlOf, executionsOf, homeOf, insidePath, type LocalPlace, treeOf } from './layout.ts';
import { claim, commandPid, nextChange, pidIn, readLogFile, recordLimit, statusOf } from './processes.ts';
import { supervise } from './supervisor.ts';
import { diskUsageMb, residentMb } from './usage.ts';

/** Short rollouts never pay for a look at their usage. */
const firstLookMs = 500;
const lookEveryMs = 1_000;
const diskUsageTimeoutMs = 60_000;
/** A host that has too much to do is slow once or twice; a tree that can't be walked time after time was made to be. */
const mostUnwalked = 3;

export class LocalSandbox implements Sandbox {
  readonly kind = 'local';
  readonly name: string;
  readonly labels: SandboxLabels;
  readonly twoUids: boolean;
  readonly #place: LocalPlace;
  readonly #confinement: Confinement;
  #unwalked = 0;

  constructor(place: LocalPlace, confinement: Confinement) {
    this.name = place.spec.name;
    this.labels = place.spec.labels;
    this.twoUids = place.accounts.agent.uid !== place.accounts.grader.uid;
    this.#place = place;
    this.#confinement = confinement;
  }

  putFiles({ tree, at, owner }: PutFiles, signal: AbortSignal): Promise<void> {
    return this.#explained(async () => {
      const account = ownerOf(this.#place.accounts, owner);
      withDirectory(treeOf(this.#place), relativeSegments(insidePath(at)), account, (directory) => {
        for (const [path, entry] of tree) writeBeneath(directory, path, entry, account);
      });
    }, signal);
  }

  readFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
    return this.#explained(async () => readBeneath(treeOf(this.#place), insidePath(path), maxBytes), signal);
  }

  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    return this.#explained(async () => {
      const result = await this.#run(request, signal);
      // A removal ends the command too: only in a sandbox that is still there it is a result.
      if (result.exitCode !== 0) this.#requireThere();
      return result;
    }, signal);
  }

  #run(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    const { timeoutMs, maxOutputBytes, stdin } = request;
    const pidFile = join(executionsOf(this.#place), `${request.account}-${randomUUID()}`);
    const end = (): void => {
      const pid = pidIn(pidFile);
      if (pid !== undefined) killPid(pid);
    };
    const { argv, env } = this.#confine(request, false);
    const joined = joinGroup(this.#place.group, argv);
    return runForeground({ argv: joined, env, pidFile, end, timeoutMs, maxOutputBytes, stdin }, signal);
  }

  start(request: StartRequest, signal: AbortSignal): Promise<StartResult> {
    return this.#explained(() => this.#startOnce(request, signal), signal);
  }

  async #startOnce(request: StartRequest, signal: AbortSignal): Promise<StartResult> {
    const control = claim(controlOf(this.#place), requireKey(request.key), request.account);
    if (control === undefined) return 'already-started';
    for (const files of request.files ?? []) await this.putFiles(files, signal);
    const { accounts, group } = this.#place;
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
    let lookAtMs = Date.now() + firstLookMs;
    for (;;) {
      signal.throwIfAborted();
      const directory = this.#processOf(key);
      const status = this.#statusOf(key);
      const nowMs = Date.now();
      if (status.state !== 'running' || nowMs >= deadlineMs) return status;
      if (nowMs >= lookAtMs) {
        await this.#enforceLimits(directory, diskBeforeMb, signal);
        lookAtMs = Date.now() + lookEveryMs;
      }
      await nextChange(directory, Math.min(deadlineMs, lookAtMs) - nowMs, signal);
    }
  }

  async readLog(key: string, range: LogRange): Promise<LogPart> {
    return readLogFile(this.#processOf(key), range, logBytes);
  }

  async kill(key: string): Promise<void> {
    await endProcess(this.#processOf(key));
  }

  async killProcesses(account: Account): Promise<void> {
    this.#requireThere();
    await endAccounts(this.#place, [account]);
  }

  async diskUsage(): Promise<{ readonly usedMb: number; readonly limitMb: number }> {
    this.#requireThere();
    const usedMb = await diskUsageMb(treeOf(this.#place), AbortSignal.timeout(diskUsageTimeoutMs));
    if (usedMb === undefined) {
      throw new SandboxFailure('SandboxUnavailable', `expected to hear what ${this.name} holds, got no answer in time`);
    }
    return { usedMb, limitMb: this.#place.spec.diskMb };
  }

  /** What is read while the sandbox is taken away looks like a process that never was. */
  #statusOf(key: string): ProcessStatus {
    const status = statusOf(this.#processOf(key));
    if (status.state !== 'running') this.#requireThere();
    return status;
  }

  #processOf(key: string): string {
    this.#requireThere();
    return join(controlOf(this.#place), requireKey(key));
  }

  /** A call that fails in a sandbox that is gone is a loss; in one that is there, a matter of the call itself. */
  async #explained<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    this.#requireThere();
    signal.throwIfAborted();
    try {
      return await call();
    } catch (cause) {
      signal.throwIfAborted();
      this.#requireThere();
      throw cause;
    }
  }

  #requireThere(): void {
    if (existsSync(controlOf(this.#place))) return;
    const text = `expected the sandbox ${this.name} at ${this.#place.directory}, got nothing: it was removed`;
    throw new SandboxFailure('SandboxLost', text, { loss: 'removed' });
  }

  #confine({ argv, cwd, env, account }: Command, detached: boolean) {
    const place = this.#place;
    const { outer, inner } = splitEnvironment(env, homeOf(account));
    const confined = { place, account, argv, cwd: cwd ?? place.spec.workdir, innerEnv: inner, detached };
    return { argv: this.#confinement.commandLine(confined), env: outer };
  }

  /** Ends a process that is over a limit which no kernel enforces here. */
  async #enforceLimits(directory: string, diskBeforeMb: number, signal: AbortSignal): Promise<void> {
    const pid = commandPid(directory);
    if (pid === undefined) return;
    const limits = this.#place.spec;
    const overMemory = !this.#place.group && residentMb(pid) > limits.memoryMb;
    if (!overMemory && !(await this.#isOverDisk(diskBeforeMb, signal))) return;
    recordLimit(directory, overMemory ? 'memory' : 'disk');
    await endAccounts(this.#place, ['agent']);
    await endProcess(directory);
  }

  async #isOverDisk(diskBeforeMb: number, signal: AbortSignal): Promise<boolean> {
    const usedMb = await diskUsageMb(treeOf(this.#place), signal);
    this.#unwalked = usedMb === undefined ? this.#unwalked + 1 : 0;
    return usedMb === undefined ? this.#unwalked >= mostUnwalked : usedMb > this.#place.spec.diskMb + diskBeforeMb;
  }
}
