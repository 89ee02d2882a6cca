import { type Duplex, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { createHeadBuffer } from '../../process/head-buffer.ts';
import { killedCode } from '../exit-status.ts';
import { SandboxFailure } from '../failure.ts';
import { callDaemon } from './daemon.ts';
import { createExecStream } from './exec-stream.ts';

const looksAtEnd = 20;
const lookPauseMs = 100;

export interface ExecOptions {
  readonly uid: number;
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The names of variables of the container that the command is not to have. */
  readonly without?: readonly string[] | undefined;
  readonly stdin?: Uint8Array | undefined;
  readonly onStdout: (chunk: Buffer) => void;
  readonly onStderr: (chunk: Buffer) => void;
  /** The time that the command may take once the daemon has started it. Default: any time. */
  readonly limitMs?: number;
}

/** The end of a command. */
export interface ExecEnd {
  readonly exitCode: number;
  /** Whether the command had a process. Without one the daemon reports an exit code, too, and its reason as output. */
  readonly hasRun: boolean;
}

/** A command whose output is dropped. */
interface StartedExec {
  /** Resolves when the command has ended or is out of reach; with nothing if its end is unknown. */
  readonly detached: Promise<(ExecEnd & { readonly output: string }) | undefined>;
  release(): void;
}

/** The output that is kept of a command, for the reason why it did not start. */
const reasonBytes = 2_000;

/**
 * Runs one exec in a container and returns how it ended once its output was delivered. An abort stops listening and leaves the
 * command running, and so does the end of its time, after which it throws a TimeoutError. A daemon that is slow to answer takes
 * nothing of that time.
 */
export async function runExec(
  container: Docker.Container,
  options: ExecOptions,
  signal: AbortSignal,
): Promise<ExecEnd> {
  signal.throwIfAborted();
  const withInput = options.stdin !== undefined;
  const exec = await callDaemon(() =>
    container.exec({ ...execRequest(options), AttachStdin: withInput, AttachStdout: true, AttachStderr: true }),
  );
  const stream = await callDaemon(() => exec.start({ hijack: withInput, stdin: withInput }));
  container.modem.demuxStream(stream, sink(options.onStdout), sink(options.onStderr));
  const { limitMs } = options;
  const ending = limitMs === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
  const stop = (): void => void stream.destroy(ending.reason);
  ending.addEventListener('abort', stop);
  try {
    ending.throwIfAborted();
    await callDaemon(
      () =>
        new Promise<void>((resolve, reject) => {
          stream.on('end', resolve);
          stream.on('close', resolve);
          stream.on('error', reject);
          if (withInput) stream.end(options.stdin);
        }),
    );
  } catch (error) {
    ending.throwIfAborted(); // the stream fails with the reason, which is no failure of the daemon
    throw error;
  } finally {
    ending.removeEventListener('abort', stop);
    stream.destroy();
  }
  ending.throwIfAborted();
  return endOf(exec);
}

/**
 * Returns the end of a command whose output has ended. A command that ended with its container has the code of a killed one.
 * Throws SandboxUnavailable if the command still runs: then the connection was cut, and the exit code is unknown.
 */
async function endOf(exec: Docker.Exec): Promise<ExecEnd> {
  // The daemon may note the end of a command a moment after its output.
  for (let look = 1; look <= looksAtEnd; look += 1) {
    const { ExitCode, Running, Pid } = await callDaemon(() => exec.inspect());
    if (!Running) return { exitCode: ExitCode ?? killedCode, hasRun: hasRun(ExitCode, Pid) };
    await delay(lookPauseMs);
  }
  const text =
    'expected the output of a command until its end, but the connection to the Docker daemon was cut; the stage is retried';
  throw new SandboxFailure('SandboxUnavailable', text);
}

/** Returns whether a command that has ended had a process. One that had none has an exit code by which shells say so, too. */
const hasRun = (exitCode: number | null, pid: number): boolean => pid !== 0 || (exitCode !== 126 && exitCode !== 127);

/** Starts a command without reading its output. A command with input gets it before `detached` resolves. */
export async function startExec(
  container: Docker.Container,
  options: Pick<ExecOptions, 'uid' | 'argv' | 'env' | 'without' | 'stdin'>,
): Promise<StartedExec> {
  const { stdin } = options;
  if (stdin === undefined) {
    const exec = await callDaemon(() => container.exec(execRequest(options)));
    const answer = await callDaemon(() => exec.start({ Detach: true }));
    answer.destroy();
    return { detached: Promise.resolve(undefined), release: () => undefined };
  }
  const streams = { AttachStdin: true, AttachStdout: true, AttachStderr: true };
  const exec = await callDaemon(() => container.exec({ ...execRequest(options), ...streams }));
  const stream = await callDaemon(() => exec.start({ hijack: true, stdin: true }));
  const closed = new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error']) stream.on(event, resolve);
  });
  const output = createHeadBuffer(reasonBytes);
  stream.on('data', output.push);
  stream.end(stdin);
  const detached = closed.then(async () => {
    const { ExitCode, Pid } = await callDaemon(() => exec.inspect());
    if (ExitCode === null) return undefined;
    return { exitCode: ExitCode, hasRun: hasRun(ExitCode, Pid), output: String(output.bytes()) };
  });
  detached.catch(() => undefined);
  return { detached, release: () => void stream.destroy() };
}

/** Starts a command whose stdin and stdout are the returned stream. */
export async function streamExec(
  container: Docker.Container,
  options: Pick<ExecOptions, 'uid' | 'argv' | 'env' | 'without'>,
): Promise<Duplex> {
  const streams = { AttachStdin: true, AttachStdout: true, AttachStderr: true };
  const exec = await callDaemon(() => container.exec({ ...execRequest(options), ...streams }));
  return createExecStream(await callDaemon(() => exec.start({ hijack: true, stdin: true })));
}

function execRequest({
  uid,
  argv,
  env = {},
  without = [],
}: Pick<ExecOptions, 'uid' | 'argv' | 'env' | 'without'>): Docker.ExecCreateOptions {
  const isGiven = (name: string): boolean => Object.hasOwn(env, name);
  return {
    Cmd: [...argv],
    User: `${uid}:${uid}`,
    WorkingDir: '/',
    // The daemon removes a variable that is named without a value.
    Env: [
      ...without.filter((name) => !isGiven(name)),
      ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ],
  };
}

function sink(take: (chunk: Buffer) => void): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      take(chunk);
      done();
    },
  });
}
