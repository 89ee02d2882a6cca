import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { createHeadBuffer } from '../../process/head-buffer.ts';
import { NotStarted, SandboxFailure } from '../failure.ts';
import { collect } from '../files.ts';
import type { Account } from '../sandbox.ts';
import { type Role, rootUid, uidOf } from '../shell/accounts.ts';
import { findOwnPrograms } from '../shell/own-programs.ts';
import type { Script, ScriptResult, Shell, StartedScript } from '../shell/shell.ts';
import { untilStarted } from '../shell/until-started.ts';
import { callDaemon, daemonStatus, explainLoss } from './daemon.ts';
import type { BytesBeside } from './disk-beside.ts';
import { endAllOf, endAllOfRoot } from './end-processes.ts';
import { type ExecEnd, type ExecOptions, runExec, startExec, streamExec } from './exec.ts';
import { filledBy } from './filled-by.ts';

const defaultOutputBytes = 2 ** 20;
/** The time of a command that a container may be too full of processes, or the machine too busy, to run. */
const shortCommandMs = 30_000;
const never = new AbortController().signal;
const lossWaitsMs = [0, 100, 500, 1_000];
const sizes = z.object({ SizeRw: z.number().default(0) });

/** The tasks of a container in which nothing runs but its init, the process that keeps it alive, and a recorder. */
const quietTasks = 3;

const none: BytesBeside = async () => 0;

/** The exit code of an exec that the runtime could not start. */
const cannotExec = 126;
/** The output that is kept of a command that did not start. */
const reasonBytes = 500;

/** Creates the shell of a container, whose scripts are execs of the daemon. */
export function createContainerShell(
  docker: Docker,
  container: {
    readonly name: string;
    readonly id: string;
    readonly root?: boolean | undefined;
    /** The names of the variables that its image sets. */
    readonly variables: readonly string[];
    /** Measures what its services have written; absent if it has none. */
    readonly bytesBeside?: BytesBeside | undefined;
  },
): Shell {
  return new ExecShell(docker, container);
}

class ExecShell implements Shell {
  readonly name: string;
  readonly quietTasks = quietTasks;
  readonly #container: Docker.Container;
  readonly #docker: Docker;
  readonly #id: string;
  /** Whether agent and grader are root. */
  readonly #root: boolean;
  readonly #variables: readonly string[];
  readonly #bytesBeside: BytesBeside;

  constructor(
    docker: Docker,
    { name, id, root = false, variables, bytesBeside = none }: Parameters<typeof createContainerShell>[1],
  ) {
    this.#container = docker.getContainer(id);
    this.#docker = docker;
    this.name = name;
    this.#id = id;
    this.#root = root;
    this.#variables = variables;
    this.#bytesBeside = bytesBeside;
  }

  uidOf(role: Role): number {
    return this.#root && role !== 'keeper' ? rootUid : uidOf(this.name, role);
  }

  /** Runs a script. It is tried again where it can't be started: runc can't while the container is frozen, for example. */
  run(script: Script, signal: AbortSignal): Promise<ScriptResult> {
    const maxBytes = script.maxOutputBytes ?? defaultOutputBytes;
    return untilStarted(async () => {
      const stdout = createHeadBuffer(maxBytes);
      const stderr = createHeadBuffer(maxBytes);
      const exitCode = await this.#runOnce(script, { stdout: stdout.push, stderr: stderr.push }, signal);
      const truncated = stdout.truncated() || stderr.truncated();
      return { exitCode, stdout: stdout.bytes(), stderr: stderr.bytes(), truncated };
    });
  }

  follow(script: Script, onStdout: (chunk: Buffer) => void, signal: AbortSignal): Promise<number> {
    return this.#runOnce(script, { stdout: onStdout, stderr: () => undefined }, signal);
  }

  async start(script: Script): Promise<StartedScript> {
    const { detached, release } = await this.#explained(() => startExec(this.#container, this.#optionsFor(script)));
    const code = detached.then((end) => (end === undefined ? undefined : this.#codeOf(end, () => end.output)));
    code.catch(() => undefined);
    return { detached: code, release };
  }

  stream(script: Script): Promise<Duplex> {
    return this.#explained(() => streamExec(this.#container, this.#optionsFor(script)));
  }

  async endAll(account: Account): Promise<void> {
    const ignore = (): void => undefined;
    const kill = async (uid: number, text: string): Promise<boolean> => {
      const argv = ['/bin/sh', '-c', text];
      const options = { uid, argv, without: this.#variables, onStdout: ignore, onStderr: ignore };
      try {
        await this.#exec({ ...options, limitMs: shortCommandMs }, never);
        return true;
      } catch (error) {
        if (error instanceof Error && error.name === 'TimeoutError') return false;
        throw error;
      }
    };
    const container = this.#container;
    if (this.#root) await endAllOfRoot(container, kill);
    else await endAllOf(container, this.uidOf(account), kill);
  }

  async writtenBytes(): Promise<number> {
    const withSize: Docker.ContainerInspectOptions & { readonly size: boolean } = { size: true };
    const info = await this.#explained(() => callDaemon(() => this.#container.inspect(withSize)));
    return sizes.parse(info).SizeRw + (await this.#bytesBeside(this.name));
  }

  /** Creates the directory through the daemon: no account inside has the capability to give it to another one. */
  async makeDirectory(path: string, owner: Account): Promise<void> {
    const uid = this.uidOf(owner);
    const tar = pack();
    const packed = collect(tar);
    tar.entry({ name: `${path.slice(1)}/`, type: 'directory', mode: 0o755, uid, gid: uid });
    tar.finalize();
    const archive = await packed;
    await callDaemon(() => this.#container.putArchive(archive, { path: '/' }));
  }

  #optionsFor({ role, text, args, env = {}, stdin }: Script): Omit<ExecOptions, 'onStdout' | 'onStderr'> {
    const argv = ['/bin/sh', '-c', `${findOwnPrograms}${text}`, 'temper', ...args];
    return { uid: this.uidOf(role), argv, env, without: this.#variables, stdin };
  }

  /** Runs a script and returns its exit code. Throws `NotStarted` if nothing of it has run. */
  async #runOnce(
    script: Script,
    take: { readonly stdout: (chunk: Buffer) => void; readonly stderr: (chunk: Buffer) => void },
    signal: AbortSignal,
  ): Promise<number> {
    const reason = createHeadBuffer(reasonBytes);
    const onStdout = (chunk: Buffer): void => {
      reason.push(chunk);
      take.stdout(chunk);
    };
    const end = await this.#exec({ ...this.#optionsFor(script), onStdout, onStderr: take.stderr }, signal);
    return this.#codeOf(end, () => String(reason.bytes()));
  }

  #exec(options: ExecOptions, signal: AbortSignal): Promise<ExecEnd> {
    return this.#explained(async () => {
      const end = await runExec(this.#container, options, signal);
      // A dying container ends its execs with such a code too, so check that the container still runs.
      const loss = end.exitCode >= cannotExec ? await this.#findLoss(end) : undefined;
      if (loss) throw loss;
      return end;
    });
  }

  /** Returns the exit code of a command. Throws `NotStarted` if nothing of it has run; `output` is then the daemon's reason. */
  async #codeOf({ exitCode, hasRun }: ExecEnd, output: () => string): Promise<number> {
    if (hasRun || lacksShell(output())) return exitCode;
    throw await this.#notStarted(output().trim().slice(0, reasonBytes));
  }

  async #notStarted(evidence: string, cause?: unknown): Promise<NotStarted> {
    const filled = await filledBy(this.#container);
    if (filled === null) {
      const text = `the Docker daemon could not start a command in sandbox ${this.name}, since its machine may be overloaded; the stage is retried`;
      return new NotStarted('SandboxUnavailable', text, { cause, evidence });
    }
    const text = `no command can be started in sandbox ${this.name}, since what runs in it uses up its ${filled}`;
    return new NotStarted('SandboxLost', text, { cause, evidence, loss: lossBy[filled] });
  }

  /**
   * Returns the reason if the container no longer runs. A dying container ends its execs a moment before the daemon reports it as
   * stopped, so a live one must prove it by running another command. The delays are for a container that is full of processes
   * and can do neither yet. A command that did not start is tried again, which proves it as well.
   */
  async #findLoss({ hasRun }: ExecEnd): Promise<SandboxFailure | undefined> {
    if (!hasRun) return explainLoss(this.#docker, this.name, this.#id);
    for (const waitMs of lossWaitsMs) {
      await delay(waitMs);
      const loss = await explainLoss(this.#docker, this.name, this.#id);
      if (loss || (await this.#answers())) return loss;
    }
    return undefined;
  }

  async #answers(): Promise<boolean> {
    const ignore = (): void => undefined;
    const argv = ['/bin/sh', '-c', ':'];
    const options = { uid: this.uidOf('keeper'), argv, without: this.#variables, onStdout: ignore, onStderr: ignore };
    return runExec(this.#container, { ...options, limitMs: shortCommandMs }, never).then(
      ({ exitCode }) => exitCode === 0,
      () => false,
    );
  }

  /** Explains a failed call: as the loss of the sandbox if its container is gone, otherwise as the failure of this call. */
  async #explained<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (cause) {
      if (cause instanceof SandboxFailure || daemonStatus(cause) === undefined) throw cause;
      const loss = await explainLoss(this.#docker, this.name, this.#id);
      if (loss) throw loss;
      const evidence = errorMessage(cause);
      if (/OCI runtime exec failed/.test(evidence) && !lacksShell(evidence))
        throw await this.#notStarted(evidence, cause);
      throw unusable(this.name, cause);
    }
  }
}

const lossBy = { memory: 'out-of-memory', processes: 'ended-inside' } as const;

/** Whether the daemon could not start a command because of the sandbox's shell: it is missing, or the agent has changed it. */
const lacksShell = (reason: string): boolean => /\bexec:? "?\/bin\/sh"?: /.test(reason);

function unusable(name: string, cause: unknown): SandboxFailure {
  const evidence = errorMessage(cause);
  if (/executable file not found|no such file or directory/i.test(evidence)) {
    const text = `expected the image of sandbox ${name} to have sh, got none; use an image with a shell, tar and coreutils`;
    return new SandboxFailure('UnsupportedTask', text, { cause, evidence });
  }
  const text = `expected the Docker daemon to run a command in sandbox ${name}, but it rejected the command`;
  return new SandboxFailure('Internal', text, { cause, evidence });
}
