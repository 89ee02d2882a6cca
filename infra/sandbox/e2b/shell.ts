import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { createHeadBuffer } from '../../process/head-buffer.ts';
import { FileRefused, SandboxFailure } from '../failure.ts';
import type { Account } from '../sandbox.ts';
import type { Role } from '../shell/accounts.ts';
import { killTogether } from '../shell/kill-together.ts';
import type { Script, ScriptResult, Shell, StartedScript } from '../shell/shell.ts';
import { type E2bRole, idOf, userOf } from './accounts.ts';
import type { E2bApi } from './api.ts';
import { type Envd, EnvdError, type EnvdProcess } from './envd.ts';
import { exitCodeOf } from './exit-code.ts';
import type { Lease } from './lease.ts';
import * as scripts from './scripts.ts';
import { createProcessStream } from './stream.ts';

const defaultOutputBytes = 2 ** 20;
const never = new AbortController().signal;
/** The pauses before a sandbox that its server still lists, but whose envd does not answer, counts as unreachable. */
const lossWaitsMs = [0, 200, 1_000, 3_000];

export interface E2bShellOptions {
  readonly name: string;
  readonly id: string;
  readonly api: E2bApi;
  readonly envd: Envd;
  readonly lease: Lease;
}

/** A script that may run as root, too. */
export type RootScript = Omit<Script, 'role' | 'stdin'> & {
  readonly role: E2bRole;
  readonly stdin?: Script['stdin'] | AsyncIterable<Uint8Array>;
  /** Set for a script that starts with all variables of the template. */
  readonly asTemplate?: true;
};

export interface E2bShell extends Shell {
  run(script: RootScript, signal: AbortSignal): Promise<ScriptResult>;
  /** Returns the bytes in use on the sandbox's disk. */
  diskUsed(): Promise<number>;
}

export function createE2bShell(options: E2bShellOptions): E2bShell {
  return new EnvdShell(options);
}

class EnvdShell implements E2bShell {
  readonly name: string;
  /** The server's own processes run in the sandbox, too, so nothing says that it is quiet. */
  readonly quietTasks = null;
  readonly #options: E2bShellOptions;
  #usedAtStart: Promise<number> | undefined;

  constructor(options: E2bShellOptions) {
    this.name = options.name;
    this.#options = options;
  }

  uidOf(role: Role): number {
    return idOf(this.name, role);
  }

  async run(script: RootScript, signal: AbortSignal): Promise<ScriptResult> {
    const maxBytes = script.maxOutputBytes ?? defaultOutputBytes;
    const stdout = createHeadBuffer(maxBytes);
    const stderr = createHeadBuffer(maxBytes);
    const exitCode = await this.#listen(script, { stdout: stdout.push, stderr: stderr.push }, signal);
    const truncated = stdout.truncated() || stderr.truncated();
    return { exitCode, stdout: stdout.bytes(), stderr: stderr.bytes(), truncated };
  }

  follow(script: Script, onStdout: (chunk: Buffer) => void, signal: AbortSignal): Promise<number> {
    return this.#listen(script, { stdout: onStdout, stderr: () => undefined }, signal);
  }

  async start(script: Script): Promise<StartedScript> {
    const process = await this.#explained(() => this.#start(script, script.stdin !== undefined, never));
    if (script.stdin === undefined) {
      process.release();
      return { detached: Promise.resolve(undefined), release: () => undefined };
    }
    await this.#explained(() => feed(process, script.stdin));
    const detached = endOf(process).catch(() => undefined);
    return { detached, release: process.release };
  }

  stream(script: Script): Promise<Duplex> {
    return this.#explained(async () => createProcessStream(await this.#start(script, true, never)));
  }

  async endAll(account: Account): Promise<void> {
    await killTogether(this, account);
    const args = [String(this.uidOf(account))];
    const { exitCode } = await this.run({ role: 'root', text: scripts.endAll, args }, never);
    if (exitCode === 0) return;
    const text = `could not end the processes of the ${account} in sandbox ${this.name}: more appear than are ended`;
    throw new SandboxFailure('Internal', text);
  }

  async writtenBytes(): Promise<number> {
    this.#usedAtStart ??= this.run({ role: 'root', text: scripts.usedAtStart, args: [] }, never).then(({ stdout }) =>
      Number(String(stdout)),
    );
    this.#usedAtStart.catch(() => {
      this.#usedAtStart = undefined;
    });
    const used = await this.diskUsed();
    return Math.max(0, used - (await this.#usedAtStart));
  }

  diskUsed(): Promise<number> {
    return this.#explained(() => this.#options.envd.diskUsed());
  }

  async makeDirectory(path: string, owner: Account): Promise<void> {
    const args = [path, String(this.uidOf(owner))];
    const { exitCode, stderr } = await this.run({ role: 'root', text: scripts.makeDirectory, args }, never);
    if (exitCode === 0) return;
    const reason = exitCode === scripts.behindLink ? 'a symlink is on the way' : String(stderr).trim().slice(0, 300);
    throw new FileRefused('outside', path, `could not create ${path} for the ${owner}: ${reason}`);
  }

  #listen(
    script: RootScript,
    take: { readonly stdout: (chunk: Buffer) => void; readonly stderr: (chunk: Buffer) => void },
    signal: AbortSignal,
  ): Promise<number> {
    signal.throwIfAborted();
    return this.#explained(async () => {
      const process = await this.#start(script, script.stdin !== undefined, signal);
      // An input that fails for any reason but the end of the process would let it wait for ever.
      feed(process, script.stdin).catch((error: Error) => process.release(error));
      return endOf(process, take);
    }, signal);
  }

  async #start(
    { role, text, args, env = {}, asTemplate }: RootScript,
    input: boolean,
    signal: AbortSignal,
  ): Promise<EnvdProcess> {
    await this.#options.lease.keep();
    const begin = asTemplate === true ? '' : scripts.begin;
    const variables = asTemplate === true ? env : scripts.variablesOf(env);
    const argv = ['/bin/sh', '-c', `${begin}${text}`, 'temper', ...args];
    return this.#options.envd.start({ user: userOf[role], argv, env: variables, input }, signal);
  }

  /** Explains a failed call: as the loss of the sandbox if its server has it no more, otherwise as the failure of this call. */
  async #explained<T>(call: () => Promise<T>, signal: AbortSignal = never): Promise<T> {
    try {
      return await call();
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof SandboxFailure) throw cause;
      throw (await this.#findLoss()) ?? this.#failure(cause);
    }
  }

  /** Returns the reason if the sandbox is gone. Its server may list it for a moment longer. */
  async #findLoss(): Promise<SandboxFailure | undefined> {
    const { api, envd, id, lease } = this.#options;
    for (const waitMs of lossWaitsMs) {
      await delay(waitMs);
      const found = await api.info(id);
      if (found === undefined) return lostSandbox(this.name, id, lease.endMs);
      if (await envd.answers()) return undefined;
    }
    return undefined;
  }

  #failure(cause: unknown): SandboxFailure {
    const evidence = errorMessage(cause);
    const details = { cause, evidence };
    if (cause instanceof EnvdError && refusedCodes.has(cause.code)) {
      const text = `expected envd to run a command in sandbox ${this.name}, but it refused the command; the template may lack /bin/sh, or the server speaks another version of envd's protocol`;
      return new SandboxFailure('Internal', text, details);
    }
    const text = `expected envd of sandbox ${this.name} to answer, got no whole answer; the stage is retried`;
    return new SandboxFailure('SandboxUnavailable', text, details);
  }
}

const refusedCodes = new Set(['invalid_argument', 'unauthenticated', 'permission_denied', 'unimplemented', 'internal']);

/** Returns the failure for a sandbox that its server has no more. */
function lostSandbox(name: string, id: string, leaseEndMs: number): SandboxFailure {
  const leftSec = Math.round((leaseEndMs - Date.now()) / 1_000);
  const when = leftSec > 0 ? `${leftSec} s before the end of its lease` : 'at the end of its lease';
  const text = `the E2B server has sandbox ${name} no more, ${when}; the rollout continues in a new sandbox`;
  return new SandboxFailure('SandboxLost', text, {
    evidence: `sandbox id ${id}`,
    loss: leftSec > 0 ? 'removed' : 'deadline',
  });
}

/** Writes the whole input of a process. A process that ends before it has read all is no failure. */
async function feed(process: EnvdProcess, stdin: RootScript['stdin']): Promise<void> {
  if (stdin === undefined) return;
  try {
    for await (const bytes of stdin instanceof Uint8Array ? [stdin] : stdin) await process.write(bytes);
    await process.endInput();
  } catch (error) {
    if (!(error instanceof EnvdError) || (error.code !== 'not_found' && error.code !== 'internal')) throw error;
  }
}

/** Reads a process's output to its end, and returns its exit code. */
async function endOf(
  process: EnvdProcess,
  take?: { readonly stdout: (chunk: Buffer) => void; readonly stderr: (chunk: Buffer) => void },
): Promise<number> {
  for await (const { data, end } of process.events) {
    if (data?.stdout !== undefined) take?.stdout(data.stdout);
    if (data?.stderr !== undefined) take?.stderr(data.stderr);
    if (end !== undefined) return exitCodeOf(end);
  }
  throw new EnvdError('unknown', 'the stream of a process ended before the process');
}
