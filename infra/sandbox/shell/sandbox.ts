import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxChanges } from '../changes.ts';
import { exitStatus } from '../exit-status.ts';
import { NotStarted, SandboxFailure } from '../failure.ts';
import { startVariables } from '../image-environment.ts';
import type { StoredSpec } from '../labels.ts';
import { requireKey } from '../names.ts';
import type {
  Account,
  Command,
  ExecRequest,
  ExecResult,
  LimitHit,
  LogPart,
  LogRange,
  ProcessStatus,
  PutFiles,
  Sandbox,
  SandboxKind,
  SandboxLabels,
  StartRequest,
  StartResult,
  WaitOptions,
} from '../sandbox.ts';
import { homeOf } from './accounts.ts';
import { putFiles, readInside } from './files.ts';
import { imageVariables } from './own-programs.ts';
import { blockBytes, createProcesses, markOf, type Processes } from './processes.ts';
import type { SandboxReports } from './reports.ts';
import * as scripts from './scripts.ts';
import type { Shell } from './shell.ts';

const megabyte = 2 ** 20;
const firstMeasurementMs = 1_000;
const measureEveryMs = 2_000;
/** The pause between two disk measurements is at least this many times the duration of one. */
const pausePerMeasurement = 20;
/** Delay after its timeout until a foreground command ends whose caller has died. */
const orphanGraceSec = 5;
/** The longest time to end the processes of a key by their mark, and then the longest time to wait for the report of their end. */
const killedMs = 30_000;
/** The longest time to note that the time of a process is over. */
const notedMs = 10_000;
const never = new AbortController().signal;

/** A running sandbox: the means to run scripts in it, and what its handle needs to know. */
export interface ShellSandboxOptions {
  readonly kind: SandboxKind;
  readonly shell: Shell;
  readonly labels: SandboxLabels;
  readonly spec: StoredSpec;
  readonly reports: SandboxReports;
  /** The way of all changes into another sandbox; absent if the kind has none. */
  readonly changes?: SandboxChanges;
}

/** Creates a handle of a sandbox whose processes, logs and files are managed by shell scripts in it. */
export function createShellSandbox(options: ShellSandboxOptions): Sandbox {
  return new ShellSandbox(options);
}

class ShellSandbox implements Sandbox {
  readonly kind: SandboxKind;
  readonly twoUids: boolean;
  readonly name: string;
  readonly labels: SandboxLabels;
  readonly changes?: SandboxChanges;
  readonly hold?: NonNullable<Sandbox['hold']>;
  readonly #spec: StoredSpec;
  readonly #shell: Shell;
  readonly #processes: Processes;
  readonly #reports: SandboxReports;

  constructor({ kind, shell, labels, spec, reports, changes }: ShellSandboxOptions) {
    this.kind = kind;
    this.name = shell.name;
    this.labels = labels;
    if (changes !== undefined) this.changes = changes;
    if (shell.hold !== undefined) this.hold = shell.hold.bind(shell);
    this.#spec = spec;
    this.twoUids = !spec.root;
    this.#shell = shell;
    this.#reports = reports;
    this.#processes = createProcesses(shell, spec, reports);
  }

  putFiles(files: PutFiles, signal: AbortSignal): Promise<void> {
    return putFiles(this.#shell, files, signal);
  }

  readFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
    return readInside(this.#shell, path, maxBytes, signal);
  }

  async exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    signal.throwIfAborted();
    this.#reports.noteCommand();
    const { account, argv, timeoutMs, maxOutputBytes, stdin } = request;
    const { pids, diskMb, workdir } = this.#spec;
    const key = `exec-${randomUUID()}`;
    const mark = markOf(key);
    const seconds = String(Math.ceil(timeoutMs / 1_000) + orphanGraceSec);
    const blocks = String((diskMb * megabyte) / blockBytes);
    const script = {
      role: account,
      text: scripts.foreground,
      args: [String(pids), blocks, seconds, request.cwd ?? workdir, ...argv],
      env: this.#variablesOf(request, { TEMPER_PROCESS: key }),
      maxOutputBytes,
      stdin,
    };
    const over = new AbortController();
    let timedOut = false;
    const end = (): Promise<void> => this.#endMarked(account, mark);
    const ended = delay(timeoutMs, undefined, { signal: AbortSignal.any([over.signal, signal]) }).then(
      () => {
        timedOut = true;
        return end();
      },
      () => (signal.aborted ? end() : undefined),
    );
    // A command that cannot be ended may never return.
    const returned = Promise.race([this.#shell.run(script, never), rejectionOf(ended)]).finally(() => over.abort());
    const [{ exitCode, stdout, stderr, truncated }] = await Promise.all([returned, ended]);
    signal.throwIfAborted();
    const { limit: _limit, ...status } = exitStatus({ exitCode });
    return { ...status, timedOut, stdout, stderr, truncated };
  }

  openStream(command: Command, signal: AbortSignal): Promise<Duplex> {
    signal.throwIfAborted();
    const { account, argv, cwd } = command;
    this.#reports.noteCommand();
    const { pids, diskMb, workdir } = this.#spec;
    return this.#shell.stream({
      role: account,
      text: scripts.streamed,
      args: [String(pids), String((diskMb * megabyte) / blockBytes), cwd ?? workdir, ...argv],
      env: this.#variablesOf(command),
    });
  }

  start(request: StartRequest, signal: AbortSignal): Promise<StartResult> {
    requireKey(request.key);
    return this.#processes.start(request, (files) => this.putFiles(files, signal), signal);
  }

  status(key: string): Promise<ProcessStatus> {
    return this.#processes.status(requireKey(key), never);
  }

  async wait(key: string, options: WaitOptions, signal: AbortSignal): Promise<ProcessStatus> {
    requireKey(key);
    const stop = new AbortController();
    const either = AbortSignal.any([stop.signal, signal]);
    const limits = this.#enforceDiskLimit(key, options.diskBeforeMb ?? 0, either);
    limits.catch(() => undefined);
    try {
      const deadline = delay(Math.max(0, options.timeoutMs), 'late' as const, { signal: either });
      deadline.catch(() => undefined);
      for (;;) {
        const status = await Promise.race([this.#processes.watch(key, either), deadline, limits]);
        if (status === 'late') return await this.status(key);
        if (status.state !== 'running') return status;
      }
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      stop.abort();
    }
  }

  ageMs(key: string, signal: AbortSignal): Promise<number> {
    return this.#processes.ageMs(requireKey(key), signal);
  }

  readLog(key: string, range: LogRange): Promise<LogPart> {
    return this.#processes.readLog(requireKey(key), range, never);
  }

  async noteTimeOver(key: string): Promise<void> {
    const late = AbortSignal.timeout(notedMs);
    await this.#noteLimit(requireKey(key), 'time', late).catch((error: unknown) => {
      // A process that leaves no room for this command has to be ended all the same, and a lost sandbox says so at the next call.
      if (!late.aborted && !(error instanceof SandboxFailure)) throw error;
    });
  }

  async kill(key: string): Promise<void> {
    const mark = markOf(requireKey(key));
    await Promise.all([this.#endMarked('agent', mark), this.#endMarked('grader', mark)]);
    await this.#processes.watch(key, never, killedMs);
  }

  async killProcesses(account: Account): Promise<void> {
    if (await this.#reports.isQuiet()) return;
    await this.#shell.endAll(account);
  }

  async diskUsage(): Promise<{ readonly usedMb: number; readonly limitMb: number }> {
    return { usedMb: (await this.#shell.writtenBytes()) / megabyte, limitMb: this.#spec.diskMb };
  }

  #variablesOf(command: Command, mark: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
    const given = { HOME: homeOf(command.account, this.#spec), LANG: 'C.UTF-8', ...command.env, ...mark };
    return startVariables(given, command, imageVariables);
  }

  async #endMarked(account: Account, mark: string): Promise<void> {
    const script = { role: account, text: scripts.killMarked, args: [mark] } as const;
    const late = AbortSignal.timeout(killedMs);
    // The script starts two programs for each process: one that leaves no memory or no process ids may hinder it for ever.
    const isEnded = await this.#shell.run(script, late).then(
      ({ exitCode }) => exitCode === 0,
      (error: unknown) => {
        if (!late.aborted && !(error instanceof NotStarted)) throw error;
        return false;
      },
    );
    if (!isEnded) await this.#shell.endAll(account);
  }

  /**
   * Measures what was written, since no disk quota is enforced here, and ends the process if it is over the limit. Never
   * resolves. Rejects if two measurements in a row fail.
   */
  async #enforceDiskLimit(key: string, diskBeforeMb: number, signal: AbortSignal): Promise<never> {
    let pauseMs = firstMeasurementMs;
    let wasCut = false;
    for (;;) {
      await delay(pauseMs, undefined, { signal });
      const startMs = performance.now();
      const disk = await this.diskUsage().catch((error: unknown) => {
        // A connection that is cut fails the commands in it, and is opened again for the next ones.
        if (wasCut || !(error instanceof SandboxFailure) || error.type !== 'SandboxUnavailable') throw error;
        return null;
      });
      wasCut = disk === null;
      if (disk !== null && disk.usedMb > disk.limitMb + diskBeforeMb) await this.#endOver(key, 'disk');
      pauseMs = Math.max(measureEveryMs, (performance.now() - startMs) * pausePerMeasurement);
    }
  }

  async #endOver(key: string, limit: LimitHit): Promise<void> {
    await this.#noteLimit(key, limit, never);
    await this.killProcesses('agent');
    await this.#endMarked('grader', markOf(key));
  }

  async #noteLimit(key: string, limit: LimitHit, signal: AbortSignal): Promise<void> {
    await this.#shell.run({ role: 'keeper', text: scripts.noteLimit, args: [key, limit] }, signal);
  }
}

/** Returns a promise that only rejects, as the given one does. */
const rejectionOf = (promise: Promise<unknown>): Promise<never> =>
  new Promise((_resolve, reject) => {
    promise.catch(reject);
  });
