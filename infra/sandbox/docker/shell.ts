import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { createHeadBuffer } from '../../process/head-buffer.ts';
import { SandboxFailure } from '../failure.ts';
import { collect } from '../files.ts';
import type { Account } from '../sandbox.ts';
import { type Role, rootUid, uidOf } from '../shell/accounts.ts';
import type { Script, ScriptResult, Shell, StartedScript } from '../shell/shell.ts';
import { callDaemon, daemonStatus, explainLoss } from './daemon.ts';
import type { BytesBeside } from './disk-beside.ts';
import { endAllOf, endAllOfRoot } from './end-processes.ts';
import { type ExecOptions, runExec, startExec, streamExec } from './exec.ts';

const defaultOutputBytes = 2 ** 20;
/** The number of tries to start a command: runc can't while the container is frozen, or a uid's processes fill it. */
const startAttempts = 5;
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

/** Creates the shell of a container, whose scripts are execs of the daemon. */
export function createContainerShell(
  docker: Docker,
  container: {
    readonly name: string;
    readonly id: string;
    readonly root?: boolean | undefined;
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
  readonly #bytesBeside: BytesBeside;

  constructor(
    docker: Docker,
    { name, id, root = false, bytesBeside = none }: Parameters<typeof createContainerShell>[1],
  ) {
    this.#container = docker.getContainer(id);
    this.#docker = docker;
    this.name = name;
    this.#id = id;
    this.#root = root;
    this.#bytesBeside = bytesBeside;
  }

  uidOf(role: Role): number {
    return this.#root && role !== 'keeper' ? rootUid : uidOf(this.name, role);
  }

  async run(script: Script, signal: AbortSignal): Promise<ScriptResult> {
    const maxBytes = script.maxOutputBytes ?? defaultOutputBytes;
    for (let attempt = 1; ; attempt++) {
      const stdout = createHeadBuffer(maxBytes);
      const stderr = createHeadBuffer(maxBytes);
      const onStdout = (chunk: Buffer): void => stdout.push(chunk);
      const onStderr = (chunk: Buffer): void => stderr.push(chunk);
      const exitCode = await this.#exec({ ...this.#optionsFor(script), onStdout, onStderr }, signal);
      const truncated = stdout.truncated() || stderr.truncated();
      const result = { exitCode, stdout: stdout.bytes(), stderr: stderr.bytes(), truncated };
      if (!neverStarted(result) || attempt === startAttempts) return result;
    }
  }

  follow(script: Script, onStdout: (chunk: Buffer) => void, signal: AbortSignal): Promise<number> {
    return this.#exec({ ...this.#optionsFor(script), onStdout, onStderr: () => undefined }, signal);
  }

  start(script: Script): Promise<StartedScript> {
    return this.#explained(() => startExec(this.#container, this.#optionsFor(script)));
  }

  stream(script: Script): Promise<Duplex> {
    return this.#explained(() => streamExec(this.#container, this.#optionsFor(script)));
  }

  async endAll(account: Account): Promise<void> {
    const ignore = (): void => undefined;
    const kill = async (uid: number, text: string): Promise<boolean> => {
      const options = { uid, argv: ['sh', '-c', text], onStdout: ignore, onStderr: ignore };
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
    const argv = ['sh', '-c', text, 'temper', ...args];
    return { uid: this.uidOf(role), argv, env, stdin };
  }

  #exec(options: ExecOptions, signal: AbortSignal): Promise<number> {
    return this.#explained(async () => {
      const exitCode = await runExec(this.#container, options, signal);
      // A dying container ends its execs with such a code too, so check that the container still runs.
      const loss = exitCode >= cannotExec ? await this.#findLoss() : undefined;
      if (loss) throw loss;
      return exitCode;
    });
  }

  /**
   * Returns the reason if the container no longer runs. A dying container ends its execs a moment before the daemon reports it as
   * stopped, so a live one must prove it by running another command. The delays are for a container that is full of processes
   * and can do neither yet.
   */
  async #findLoss(): Promise<SandboxFailure | undefined> {
    for (const waitMs of lossWaitsMs) {
      await delay(waitMs);
      const loss = await explainLoss(this.#docker, this.name, this.#id);
      if (loss || (await this.#answers())) return loss;
    }
    return undefined;
  }

  async #answers(): Promise<boolean> {
    const ignore = (): void => undefined;
    const options = { uid: this.uidOf('keeper'), argv: ['true'], onStdout: ignore, onStderr: ignore };
    return runExec(this.#container, { ...options, limitMs: shortCommandMs }, never).then(
      (exitCode) => exitCode === 0,
      () => false,
    );
  }

  /** Explains a failed call: as the loss of the sandbox if its container is gone, otherwise as the failure of this call. */
  async #explained<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (cause) {
      if (cause instanceof SandboxFailure || daemonStatus(cause) === undefined) throw cause;
      throw (await explainLoss(this.#docker, this.name, this.#id)) ?? unusable(this.name, cause);
    }
  }
}

function neverStarted({ exitCode, stdout, stderr }: ScriptResult): boolean {
  const output = String(stdout) + String(stderr);
  return (
    exitCode >= 126 && /^OCI runtime exec failed.*(temporarily unavailable|EOF|SIGKILL|paused container)/i.test(output)
  );
}

function unusable(name: string, cause: unknown): SandboxFailure {
  const evidence = errorMessage(cause);
  if (/executable file not found|no such file or directory/i.test(evidence)) {
    const text = `expected the image of sandbox ${name} to have sh, got none; use an image with a shell, tar and coreutils`;
    return new SandboxFailure('UnsupportedTask', text, { cause, evidence });
  }
  const text = `expected the Docker daemon to run a command in sandbox ${name}, but it rejected the command`;
  return new SandboxFailure('Internal', text, { cause, evidence });
}
