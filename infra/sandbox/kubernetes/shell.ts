import { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { createHeadBuffer } from '../../process/head-buffer.ts';
import { isWithinAny } from '../changes.ts';
import { SandboxFailure } from '../failure.ts';
import type { Account } from '../sandbox.ts';
import { type Role, rootUid, uidOf } from '../shell/accounts.ts';
import { killTogether } from '../shell/kill-together.ts';
import { rootCapabilities } from '../shell/root-capabilities.ts';
import { foreground, killMarked } from '../shell/scripts.ts';
import type { Script, ScriptResult, Shell, StartedScript } from '../shell/shell.ts';
import { apiStatus } from './client.ts';
import type { Connection, Task, TaskOutput } from './connection.ts';
import type { TaskRequest } from './keeper/frames.ts';
import { KeeperFailure, wasKeeperEnded } from './keeper-failure.ts';

const defaultOutputBytes = 2 ** 20;
/** The delays after which a Pod is looked at again: its connection may break before the API knows why. */
const lossWaitsMs = [0, 200, 1_000, 3_000];
/** The same where the runtime says that the container has stopped, so that the API will say it, too, if only late on a busy node. */
const stopWaitsMs = [...lossWaitsMs, 5_000, 10_000, 15_000];
/** The words of containerd and runc about a container that does not run. */
const stoppedContainer = /CONTAINER_EXITED|in a stopped state|container not running/;
const ofRoot = rootCapabilities.map((one) => one.toLowerCase());
/**
 * The times of temper's own commands in a sandbox whose agent is root, which may stop them or replace their programs: of the keeper's,
 * which take a moment or watch for half a minute, and of those that move files.
 */
const shortMs = 120_000;
const filesMs = 180_000;
const cannotDrop = /^setpriv: failed to execute sh/m;

/** Returns the time of a script in a sandbox whose agent is root. A foreground command has one of its own, in seconds. */
function limitMsOf({ role, text, args }: Script): number {
  if (text === foreground) return Number(args[2]) * 1000 + shortMs;
  return role === 'keeper' || text === killMarked ? shortMs : filesMs;
}

interface RunLimits {
  readonly stdin?: Uint8Array | undefined;
  readonly signal: AbortSignal;
  readonly limitMs?: number;
}

/** The means of a shell to reach its Pod. */
export interface PodAccess {
  /** The name of the sandbox. */
  readonly name: string;
  readonly workdir: string;
  /** The directories in memory, which take no disk. */
  readonly inMemory: readonly string[];
  connect(): Promise<Connection>;
  /** Explains why the Pod no longer runs; undefined if it runs. */
  findLoss(): Promise<SandboxFailure | undefined>;
  /** Whether agent and grader are root. */
  readonly root: boolean;
  /** Explains how what runs in the sandbox keeps temper from it; undefined if it does not. */
  findBlock(cause: unknown): Promise<SandboxFailure | undefined>;
}

export function createPodShell(pod: PodAccess): Shell {
  return new PodShell(pod);
}

class PodShell implements Shell {
  readonly name: string;
  /** The keeper's own threads come and go. */
  readonly quietTasks = null;
  readonly #pod: PodAccess;

  constructor(pod: PodAccess) {
    this.name = pod.name;
    this.#pod = pod;
  }

  uidOf(role: Role): number {
    return this.#pod.root && role !== 'keeper' ? rootUid : uidOf(this.name, role);
  }

  async run(script: Script, signal: AbortSignal): Promise<ScriptResult> {
    const maxBytes = script.maxOutputBytes ?? defaultOutputBytes;
    const stdout = createHeadBuffer(maxBytes);
    const stderr = createHeadBuffer(maxBytes);
    const onStdout = (chunk: Buffer): void => stdout.push(chunk);
    const onStderr = (chunk: Buffer): void => stderr.push(chunk);
    // One byte more, to know whether there is more.
    const request = { ...this.#requestOf(script), sentBytes: maxBytes + 1 };
    const limits = { stdin: script.stdin, signal, ...(this.#pod.root && { limitMs: limitMsOf(script) }) };
    const exitCode = await this.#runToEnd(request, { onStdout, onStderr }, limits);
    const truncated = stdout.truncated() || stderr.truncated();
    const result = { exitCode, stdout: stdout.bytes(), stderr: stderr.bytes(), truncated };
    if (exitCode === 127 && cannotDrop.test(String(result.stderr))) throw noShell(this.name);
    return result;
  }

  follow(script: Script, onStdout: (chunk: Buffer) => void, signal: AbortSignal): Promise<number> {
    const output = { onStdout, onStderr: () => undefined };
    return this.#runToEnd(this.#requestOf(script), output, { stdin: script.stdin, signal });
  }

  async start(script: Script): Promise<StartedScript> {
    const quiet = { onStdout: () => undefined, onStderr: () => undefined };
    const task = (await this.#connect()).start({ ...this.#requestOf(script), sentBytes: 0 }, quiet);
    if (script.stdin === undefined) return { detached: Promise.resolve(undefined), release: () => undefined };
    void task.write(Buffer.from(script.stdin)).then(() => task.endInput());
    const detached = this.#explained(() => task.ended).then(({ code }) => code);
    detached.catch(() => undefined);
    return { detached, release: () => task.release() };
  }

  async stream(script: Script): Promise<Duplex> {
    const connection = await this.#connect();
    return createTaskStream(
      (output) => connection.start({ ...this.#requestOf(script), stdin: true }, output),
      // A stream that was cut is opened again at once, and needs no explanation.
      (ended) =>
        ended.catch((cause: unknown) => {
          if (this.#pod.root || wasKeeperEnded(cause)) return this.#explained(() => Promise.reject(cause));
          throw cause;
        }),
    );
  }

  async endAll(account: Account): Promise<void> {
    const { root } = this.#pod;
    // Root's own signal to all would reach the keeper, too.
    if (!root) await killTogether(this, account);
    const quiet = { onStdout: () => undefined, onStderr: () => undefined };
    const request = { do: 'end-all', uid: root ? null : this.uidOf(account) } as const;
    const limits = { signal: new AbortController().signal, ...(root && { limitMs: shortMs }) };
    const code = await this.#runToEnd(request, quiet, limits);
    if (code === 0) return;
    const text = `the processes of the ${account} in sandbox ${this.name} could not be ended; remove the sandbox`;
    throw root
      ? new SandboxFailure('SandboxLost', text, { loss: 'ended-inside' })
      : new SandboxFailure('Internal', text);
  }

  async writtenBytes(): Promise<number> {
    const signal = new AbortController().signal;
    const { workdir, inMemory } = this.#pod;
    const onDisk = (paths: readonly string[]) => paths.filter((path) => !isWithinAny(path, inMemory));
    const parts = await Promise.all([
      this.run({ role: 'agent', text: measure, args: onDisk([workdir, '/home/agent', '/tmp', '/var/tmp']) }, signal),
      this.run({ role: 'grader', text: measure, args: onDisk(['/tests', '/logs', '/root', '/solution']) }, signal),
    ]);
    return parts.reduce((sum, { stdout }) => sum + (Number.parseInt(String(stdout), 10) || 0) * 1024, 0);
  }

  async makeDirectory(path: string, owner: Account): Promise<void> {
    // Root needs no help with it.
    if (this.#pod.root) return;
    const uid = String(this.uidOf(owner));
    const request: TaskRequest = {
      ...this.#requestOf({ role: 'grader', text: makeOwned, args: [path, uid] }),
      capabilities: ['chown'],
    };
    const quiet = { onStdout: () => undefined, onStderr: () => undefined };
    // What could not be made shows when the files are written.
    await this.#runToEnd(request, quiet, { signal: new AbortController().signal });
  }

  #requestOf({ role, text, args, env = {}, stdin }: Script) {
    const argv = ['sh', '-c', role === 'keeper' ? text : `${expendable}\n${text}`, 'temper', ...args];
    const uid = this.uidOf(role);
    const capabilities = this.#pod.root && role !== 'keeper' ? ofRoot : [];
    return { do: 'run' as const, uid, capabilities, argv, env, stdin: stdin !== undefined, sentBytes: null };
  }

  async #runToEnd(
    request: TaskRequest,
    { onStdout, onStderr }: TaskOutput,
    { stdin, signal, limitMs }: RunLimits,
  ): Promise<number> {
    signal.throwIfAborted();
    const connection = await this.#connect();
    const task: Task = connection.start(request, {
      onStdout: (chunk) => {
        onStdout(chunk);
        task.take('stdout', chunk.length);
      },
      onStderr: (chunk) => {
        onStderr(chunk);
        task.take('stderr', chunk.length);
      },
    });
    if (stdin !== undefined) void task.write(Buffer.from(stdin)).then(() => task.endInput());
    const stopped = Promise.withResolvers<never>();
    const stop = (): void => {
      task.release();
      stopped.reject(signal.reason);
    };
    signal.addEventListener('abort', stop, { once: true });
    const late = () => stopped.reject(new KeeperFailure(`a command of temper's own did not end within ${limitMs} ms`));
    const timer = limitMs === undefined ? undefined : setTimeout(late, limitMs);
    try {
      const ending = async () => {
        const end = await Promise.race([task.ended, stopped.promise]);
        if (end.error === undefined || !this.#pod.root) return end;
        throw new KeeperFailure(`the keeper could not start a command: ${end.error}`);
      };
      const { code, error } = await this.#explained(ending, signal);
      if (error === undefined) return code;
      throw new SandboxFailure('SandboxUnavailable', `sandbox ${this.name} could not start a command`, {
        evidence: error,
      });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
    }
  }

  #connect(): Promise<Connection> {
    return this.#explained(
      () => this.#pod.connect(),
      undefined,
      () => this.#pod.connect(),
    );
  }

  /** Explains what broke a connection: as the loss of the sandbox if its Pod is gone, else as a connection that was cut. */
  async #explained<T>(work: () => Promise<T>, signal?: AbortSignal, again?: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      signal?.throwIfAborted();
      if (cause instanceof SandboxFailure || apiStatus(cause) !== undefined) throw cause;
      const isStopped = stoppedContainer.test(errorMessage(cause));
      for (const waitMs of isStopped ? stopWaitsMs : lossWaitsMs) {
        await delay(waitMs);
        const loss = await this.#pod.findLoss();
        if (loss) throw loss;
      }
      const block = await this.#pod.findBlock(cause);
      // The cluster may have been late to say why its own container ended.
      if (block) throw (await this.#pod.findLoss()) ?? block;
      if (this.#pod.root && again) return this.#explained(again, signal);
      const evidence = cause instanceof Error ? cause.message : String(cause);
      const refused = /server response: 403/.test(evidence);
      const todo = refused
        ? 'give this account the rights `get` and `create` on `pods/exec`'
        : 'what runs in it continues, and the call is made again';
      const text = `the connection to sandbox ${this.name} was cut; ${todo}`;
      throw new SandboxFailure('SandboxUnavailable', text, { cause, evidence: evidence.slice(0, 500) });
    }
  }
}

/** Has the kernel end this command and what it starts before the keeper, when memory is full. It may undo that, which costs it its sandbox. */
const expendable = '{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null';
/** Prints the kilobytes of directories, some of which may be missing. Few processes, since a full Pod has little CPU left. */
const measure = 'du -skxc -- "$@" 2>/dev/null | tail -n 1';
/** Makes the directory $1 of the uid $2, with those above it, unless it exists. */
const makeOwned = 'mkdir -p -- "$(dirname -- "$1")" && mkdir -m 755 -- "$1" && chown -h "$2:$2" -- "$1"';

function noShell(name: string): SandboxFailure {
  const text = `expected the image of sandbox ${name} to have sh, got none; use an image with a shell, tar and coreutils`;
  return new SandboxFailure('UnsupportedTask', text);
}

/** Creates the stream of a task's stdin and stdout. It stops taking output while its reader is behind. */
function createTaskStream(
  start: (output: TaskOutput) => Task,
  explained: (ended: Task['ended']) => Promise<unknown>,
): Duplex {
  let owed = 0;
  const task = start({
    onStdout: (chunk) => {
      if (stream.push(chunk)) task.take('stdout', chunk.length);
      else owed += chunk.length;
    },
    onStderr: (chunk) => task.take('stderr', chunk.length),
  });
  const stream = new Duplex({
    read: () => {
      if (owed > 0) task.take('stdout', owed);
      owed = 0;
    },
    write: (chunk: Buffer, _encoding, done) => void task.write(chunk).then(() => done(), done),
    final: (done) => {
      task.endInput();
      done();
    },
    destroy: (error, done) => {
      task.endInput();
      task.release();
      done(error);
    },
  });
  explained(task.ended).then(
    () => {
      // The command has ended and reads no more.
      stream.end();
      stream.push(null);
    },
    (error: Error) => stream.destroy(error),
  );
  return stream;
}
