/** Commands inside one container, by role: scripts of ours with their arguments, and what their failures mean. */

import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { SandboxFailure } from '../failure.ts';
import { HeadBuffer } from '../head-buffer.ts';
import { callDaemon, daemonStatus, explainLoss } from './daemon.ts';
import { type ExecOptions, runDetached, runExec } from './exec.ts';
import * as scripts from './scripts.ts';
import { type Role, uidOf } from './uids.ts';

export interface Script {
  readonly role: Role;
  readonly text: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: Uint8Array;
  readonly maxOutputBytes?: number;
}

export interface ScriptResult {
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly truncated: boolean;
}

const defaultOutputBytes = 2 ** 20;
/** runc can't start a process while a uid's processes fill the container; the next attempts find room. */
const startAttempts = 5;
const killTimeoutMs = 10_000;
const lossWaitsMs = [0, 100, 500, 1_000];
const sizes = z.object({ SizeRw: z.number().default(0) });

/** What an exec ends with that the runtime refused. */
const cannotExec = 126;

export class Inside {
  readonly container: Docker.Container;
  readonly #docker: Docker;
  readonly #name: string;
  readonly #id: string;

  constructor(docker: Docker, name: string, id: string) {
    this.container = docker.getContainer(id);
    this.#docker = docker;
    this.#name = name;
    this.#id = id;
  }

  async run(script: Script, signal: AbortSignal): Promise<ScriptResult> {
    const most = script.maxOutputBytes ?? defaultOutputBytes;
    for (let attempt = 1; ; attempt++) {
      const stdout = new HeadBuffer(most);
      const stderr = new HeadBuffer(most);
      const onStdout = (chunk: Buffer): void => stdout.push(chunk);
      const onStderr = (chunk: Buffer): void => stderr.push(chunk);
      const exitCode = await this.#listen({ ...this.#execOf(script), onStdout, onStderr }, signal);
      const truncated = stdout.truncated || stderr.truncated;
      const result = { exitCode, stdout: stdout.bytes(), stderr: stderr.bytes(), truncated };
      if (!neverStarted(result) || attempt === startAttempts) return result;
    }
  }

  /** As `run`, line by line of stdout while it runs. */
  follow(script: Script, onLine: (line: string) => void, signal: AbortSignal): Promise<number> {
    let rest = '';
    const onStdout = (chunk: Buffer): void => {
      const lines = (rest + chunk.toString('utf8')).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) onLine(line);
    };
    return this.#listen({ ...this.#execOf(script), onStdout, onStderr: () => undefined }, signal);
  }

  runDetached(script: Script): Promise<void> {
    return this.#explained(() => runDetached(this.container, this.#execOf(script)));
  }

  /** Ends every process of a uid but the killer itself. */
  async killAll(uid: number): Promise<void> {
    const ignore = (): void => undefined;
    const options = { uid, argv: ['sh', '-c', scripts.killAll], onStdout: ignore, onStderr: ignore };
    await this.#listen(options, AbortSignal.timeout(killTimeoutMs));
  }

  /** What was written to the container's own layer. */
  async layerBytes(): Promise<number> {
    const withSize: Docker.ContainerInspectOptions & { readonly size: boolean } = { size: true };
    const info = await this.#explained(() => callDaemon(() => this.container.inspect(withSize)));
    return sizes.parse(info).SizeRw;
  }

  #execOf({ role, text, args, env = {}, stdin }: Script): Omit<ExecOptions, 'onStdout' | 'onStderr'> {
    const argv = ['sh', '-c', text, 'temper', ...args];
    return { uid: uidOf(this.#name, role), argv, env, ...(stdin ? { stdin } : {}) };
  }

  #listen(options: ExecOptions, signal: AbortSignal): Promise<number> {
    return this.#explained(async () => {
      const exitCode = await runExec(this.container, options, signal);
      // The end of a container ends its execs with a code of their own: only in a live one it is a result.
      const lost = exitCode >= cannotExec ? await this.#lossAfter() : undefined;
      if (lost) throw lost;
      return exitCode;
    });
  }

  /**
   * A container that goes down ends its execs a moment before the daemon says that it does not run. One that still runs
   * another command was not it; the pauses are for one that does neither, for it may be full of processes.
   */
  async #lossAfter(): Promise<SandboxFailure | undefined> {
    for (const waitMs of lossWaitsMs) {
      await delay(waitMs);
      const lost = await explainLoss(this.#docker, this.#name, this.#id);
      if (lost || (await this.#answers())) return lost;
    }
    return undefined;
  }

  async #answers(): Promise<boolean> {
    const ignore = (): void => undefined;
    const options = { uid: uidOf(this.#name, 'keeper'), argv: ['true'], onStdout: ignore, onStderr: ignore };
    return runExec(this.container, options, AbortSignal.timeout(killTimeoutMs)).then(
      (exitCode) => exitCode === 0,
      () => false,
    );
  }

  /** A failing call for a container that is gone is a loss; for one that lives, a matter of the call itself. */
  async #explained<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (cause) {
      if (cause instanceof SandboxFailure || daemonStatus(cause) === undefined) throw cause;
      throw (await explainLoss(this.#docker, this.#name, this.#id)) ?? unusable(this.#name, cause);
    }
  }
}

function neverStarted({ exitCode, stdout, stderr }: ScriptResult): boolean {
  const output = String(stdout) + String(stderr);
  return exitCode >= 126 && /^OCI runtime exec failed.*(temporarily unavailable|EOF|SIGKILL)/i.test(output);
}

function unusable(name: string, cause: unknown): SandboxFailure {
  const evidence = errorMessage(cause);
  if (/executable file not found|no such file or directory/i.test(evidence)) {
    const text = `expected the image of sandbox ${name} to have sh, got none; use an image with a shell, tar and coreutils`;
    return new SandboxFailure('UnsupportedTask', text, { cause, evidence });
  }
  const text = `expected the Docker daemon to run a command in sandbox ${name}, got a refusal`;
  return new SandboxFailure('Internal', text, { cause, evidence });
}
