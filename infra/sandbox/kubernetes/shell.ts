import type { Duplex } from 'node:stream';
import { createHeadBuffer } from '../../process/head-buffer.ts';
import { isWithinAny } from '../changes.ts';
import { SandboxFailure } from '../failure.ts';
import type { Account } from '../sandbox.ts';
import { type Role, rootUid, uidOf } from '../shell/accounts.ts';
import { killTogether } from '../shell/kill-together.ts';
import { findOwnPrograms } from '../shell/own-programs.ts';
import { rootCapabilities } from '../shell/root-capabilities.ts';
import { foreground, killMarked } from '../shell/scripts.ts';
import type { Script, ScriptResult, Shell, StartedScript } from '../shell/shell.ts';
import type { Connection, TaskOutput } from './connection.ts';
import { connectExplained, explained, type ReachedPod } from './explain-cut.ts';
import type { TaskRequest } from './keeper/frames.ts';
import { KeeperFailure, mayBeDoneInside } from './keeper-failure.ts';
import { endOf, feed, startTask, type TaskLimits } from './run-task.ts';
import { createTaskStream } from './task-stream.ts';

const defaultOutputBytes = 2 ** 20;
const ofRoot = rootCapabilities.map((one) => one.toLowerCase());
/**
 * The time limits of temper's own commands where the agent is root, and may stop them or replace their programs. Those of the keeper
 * take a moment, or watch for half a minute; others move files.
 */
const shortMs = 120_000;
const filesMs = 180_000;
const cannotDrop = /^setpriv: failed to execute \/bin\/sh/m;
const never = new AbortController().signal;
const unheard: TaskOutput = { onStdout: () => undefined, onStderr: () => undefined };

/** Returns the time limit of a script where the agent is root. A foreground command has one of its own, in seconds. */
function limitMsOf({ role, text, args }: Script): number {
  if (text === foreground) return Number(args[2]) * 1000 + shortMs;
  return role === 'keeper' || text === killMarked ? shortMs : filesMs;
}

interface RunLimits extends TaskLimits {
  readonly stdin?: Uint8Array | undefined;
}

/** The means of a shell to reach its Pod. */
export interface PodAccess extends ReachedPod {
  readonly workdir: string;
  /** The directories in memory, which take no disk. */
  readonly inMemory: readonly string[];
}

/** Creates the shell of a Pod, whose scripts are tasks of the Pod's keeper. */
export function createPodShell(pod: PodAccess): PodShell {
  return new PodShellByKeeper(pod);
}

export interface PodShell extends Shell {
  hold(order: number, signal: AbortSignal): Promise<void>;
  /** Runs a script of the grader that may change the owners of files, and returns its exit code. For Pods whose agent is not root. */
  runAsOwner(script: Omit<Script, 'role'>, signal: AbortSignal): Promise<number>;
}

class PodShellByKeeper implements PodShell {
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
    return this.#runToEnd(this.#requestOf(script), { ...unheard, onStdout }, { stdin: script.stdin, signal });
  }

  async start(script: Script): Promise<StartedScript> {
    const connection = await this.#connect();
    const task = connection.start({ ...this.#requestOf(script), sentBytes: 0 }, unheard);
    if (script.stdin === undefined) return { detached: Promise.resolve(undefined), release: () => undefined };
    feed(task, script.stdin);
    const detached = explained(this.#pod, () => task.ended).then(({ code }) => code);
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
          if (mayBeDoneInside(cause, this.#pod.root)) return explained(this.#pod, () => ended);
          throw cause;
        }),
    );
  }

  async endAll(account: Account): Promise<void> {
    const { root } = this.#pod;
    // The keeper needs no new process for it, for which the account may have left no memory.
    const isEnded = await this.#endByKeeper(account);
    // Root's own signal to all would reach the keeper, too.
    if (isEnded && root) return;
    if (!root) await killTogether(this, account);
    if (await this.#endByKeeper(account)) return;
    const text = `the processes of the ${account} in sandbox ${this.name} could not be ended; remove the sandbox`;
    throw root
      ? new SandboxFailure('SandboxLost', text, { loss: 'ended-inside' })
      : new SandboxFailure('Internal', text);
  }

  async #endByKeeper(account: Account): Promise<boolean> {
    const { root } = this.#pod;
    const request = { do: 'end-all', uid: root ? null : this.uidOf(account) } as const;
    const limits = { signal: never, ...(root && { limitMs: shortMs }) };
    return (await this.#runToEnd(request, unheard, limits)) === 0;
  }

  async writtenBytes(): Promise<number> {
    const { workdir, inMemory } = this.#pod;
    const onDisk = (paths: readonly string[]) => paths.filter((path) => !isWithinAny(path, inMemory));
    const parts = await Promise.all([
      this.run({ role: 'agent', text: measure, args: onDisk([workdir, '/home/agent', '/tmp', '/var/tmp']) }, never),
      this.run({ role: 'grader', text: measure, args: onDisk(['/tests', '/logs', '/root', '/solution']) }, never),
    ]);
    return parts.reduce((sum, { stdout }) => sum + (Number.parseInt(String(stdout), 10) || 0) * 1024, 0);
  }

  async makeDirectory(path: string, owner: Account): Promise<void> {
    // Root needs no help with it.
    if (this.#pod.root) return;
    // What could not be made shows when the files are written.
    await this.runAsOwner({ text: makeOwned, args: [path, String(this.uidOf(owner))] }, never);
  }

  async hold(order: number, signal: AbortSignal): Promise<void> {
    await this.#runToEnd({ do: 'hold', order }, unheard, { signal, ...(this.#pod.root && { limitMs: shortMs }) });
  }

  runAsOwner(script: Omit<Script, 'role'>, signal: AbortSignal): Promise<number> {
    const request: TaskRequest = { ...this.#requestOf({ ...script, role: 'grader' }), capabilities: ['chown'] };
    return this.#runToEnd(request, unheard, { stdin: script.stdin, signal });
  }

  #requestOf({ role, text, args, env = {}, stdin }: Script) {
    const script = `${findOwnPrograms}${role === 'keeper' ? '' : `${expendable}\n`}${text}`;
    const argv = ['/bin/sh', '-c', script, 'temper', ...args];
    const uid = this.uidOf(role);
    const capabilities = this.#pod.root && role !== 'keeper' ? ofRoot : [];
    return { do: 'run' as const, uid, capabilities, argv, env, stdin: stdin !== undefined, sentBytes: null };
  }

  async #runToEnd(request: TaskRequest, output: TaskOutput, { stdin, signal, ...limits }: RunLimits): Promise<number> {
    signal.throwIfAborted();
    const task = startTask(await this.#connect(), request, output);
    if (stdin !== undefined) feed(task, stdin);
    const ending = async () => {
      const end = await endOf(task, { signal, ...limits });
      if (end.error === undefined || !this.#pod.root) return end;
      throw new KeeperFailure(`the keeper could not start a command: ${end.error}`);
    };
    const { code, error } = await explained(this.#pod, ending, signal);
    if (error === undefined) return code;
    throw new SandboxFailure('SandboxUnavailable', `sandbox ${this.name} could not start a command`, {
      evidence: error,
    });
  }

  #connect(): Promise<Connection> {
    return connectExplained(this.#pod);
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
