import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import type { Cluster } from './client.ts';
import { execPath } from './exec-path.ts';
import {
  createFrameDecoder,
  encodeFrame,
  type Frame,
  frameKinds,
  largestPayload,
  type SentRequest,
  type TaskEnd,
  type TaskRequest,
  windowBytes,
} from './keeper/frames.ts';
import { keeperCommand } from './keeper/program.ts';
import { heldElsewhere, KeeperEnd, KeeperFailure, KeeperLate } from './keeper-failure.ts';
import { container, type KeptPod } from './pod.ts';

/** The one connection of this process to the keeper of a Pod, which carries all its tasks. */
export interface Connection {
  /** Starts a task for this host. It fails with `HostFenced` if another one has adopted the sandbox. */
  start(request: TaskRequest, output: TaskOutput): Task;
  /** Whether the connection is broken or closed. */
  isOver(): boolean;
  close(): void;
}

export interface TaskOutput {
  onStdout(chunk: Buffer): void;
  onStderr(chunk: Buffer): void;
}

export interface Task {
  /** Rejects with what broke the connection, if that ends first. */
  readonly ended: Promise<TaskEnd>;
  /** Resolves when the task has taken the chunk. */
  write(chunk: Buffer): Promise<void>;
  /** Ends the task's stdin. */
  endInput(): void;
  /** Lets the task send as much more of an output. */
  take(output: 'stdout' | 'stderr', bytes: number): void;
  /** Stops listening and leaves the task running. */
  release(): void;
}

/** The part of a WebSocket that is used here. */
interface Socket {
  send(data: Buffer): void;
  ping(): void;
  terminate(): void;
  on(event: 'close' | 'error' | 'pong', listener: (value?: unknown) => void): unknown;
}

const stdinStream = 0;
const stdoutStream = 1;
const stderrStream = 2;
const openMs = 30_000;
const pingEveryMs = 15_000;
const lostAfterMs = 60_000;
/** The signs of life, one each 15 seconds, that a keeper may leave unanswered if the agent is root. A full Pod has little CPU for it. */
const mostUnanswered = 4;
const wordsBytes = 2_000;
const taskEnd = z.object({
  code: z.int(),
  error: z.exactOptional(z.string()),
  heldBy: z.exactOptional(z.string()),
});
/** The time after which a connection without tasks is closed, since its keeper takes memory in the Pod. */
const idleMs = 20_000;

/** Opens a connection to the keeper of a Pod, and resolves once the sandbox is set up. */
export async function connect(cluster: Cluster, { pod, root, fence }: KeptPod): Promise<Connection> {
  const connection = new KeeperConnection(root, fence);
  const timer = setTimeout(() => connection.break(new KeeperLate(`not open within ${openMs / 1000} s`)), openMs);
  try {
    const command = await keeperCommand(root);
    const opening = open(cluster, pod, command, connection);
    opening.catch(() => undefined);
    await Promise.race([opening, connection.ready]);
    await connection.ready;
    return connection;
  } finally {
    clearTimeout(timer);
  }
}

async function open(
  { namespace, sockets }: Cluster,
  pod: string,
  command: readonly string[],
  connection: KeeperConnection,
): Promise<void> {
  const path = execPath({ namespace, pod, container, stdin: true }, command);
  const socket: Socket = await sockets
    .connect(path, null, (stream, bytes) => {
      connection.receive(stream, bytes);
      return true;
    })
    .catch((error: unknown) => {
      throw connection.break(new Error(`exec in Pod ${pod}: ${messageOf(error)}`));
    });
  connection.attach(socket);
}

/** The library rejects with an event instead of an error. */
function messageOf(error: unknown): string {
  const has = typeof error === 'object' && error !== null && 'message' in error;
  return has ? String(error.message) : errorMessage(error);
}

interface RunningTask {
  readonly output: TaskOutput;
  readonly ended: PromiseWithResolvers<TaskEnd>;
  /** Bytes of input that may be sent now. */
  credit: number;
  wake: () => void;
}

class KeeperConnection implements Connection {
  readonly #ready = Promise.withResolvers<void>();
  readonly #tasks = new Map<number, RunningTask>();
  readonly #decode = createFrameDecoder(largestPayload);
  #socket: Socket | undefined;
  #numbers = 0;
  #words = '';
  #over: Error | undefined;
  #timer: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;
  #lastPongMs = Date.now();
  readonly #root: boolean;
  readonly #fence: () => string | null;
  #lastBeatMs = Date.now();
  /** Whether this process gave no sign of life for so long that the keeper may have taken it for dead. */
  #wasSilent = false;
  #isReady = false;
  /** The signs of life that the keeper has not answered. */
  #unanswered = 0;

  constructor(root: boolean, fence: () => string | null) {
    this.#root = root;
    this.#fence = fence;
    this.#ready.promise.catch(() => undefined);
  }

  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  attach(socket: Socket): void {
    this.#socket = socket;
    if (this.#over) {
      socket.terminate();
      return;
    }
    // The server sends no pings, so only these notice a dead connection.
    this.#lastPongMs = Date.now();
    this.#lastBeatMs = Date.now();
    this.#timer = setInterval(() => this.#beat(), pingEveryMs);
    socket.on('pong', () => {
      this.#lastPongMs = Date.now();
    });
    socket.on('error', (error) => this.break(error instanceof Error ? error : new Error(messageOf(error))));
    socket.on('close', (code) => this.break(new Error(`the connection was closed (${code}) ${this.#words}`.trim())));
  }

  receive(stream: number, bytes: Buffer): void {
    if (stream === stdoutStream) this.#takeAll(bytes);
    else if (stream === stderrStream) this.#words = (this.#words + String(bytes)).slice(-wordsBytes);
    // The cluster says that the keeper has ended, before it closes the socket.
    else this.break(this.#endOf(String(bytes)));
  }

  start(request: TaskRequest, output: TaskOutput): Task {
    clearTimeout(this.#idle);
    const number = ++this.#numbers;
    const ended = Promise.withResolvers<TaskEnd>();
    ended.promise.catch(() => undefined);
    const running: RunningTask = { output, ended, credit: windowBytes, wake: () => undefined };
    this.#tasks.set(number, running);
    const sent: SentRequest = { ...request, by: this.#fence() };
    this.#send(encodeFrame(frameKinds.start, number, JSON.stringify(sent)));
    if (this.#over) ended.reject(this.#over);
    return {
      ended: ended.promise,
      write: (chunk) => this.#write(number, running, chunk),
      endInput: () => this.#send(encodeFrame(frameKinds.inputEnd, number)),
      take: (name, bytes) => this.#send(encodeFrame(frameKinds.credit, number, `${name} ${bytes}`)),
      release: () => this.#send(encodeFrame(frameKinds.release, number)),
    };
  }

  isOver(): boolean {
    return this.#over !== undefined;
  }

  close(): void {
    this.break(new Error('the connection was closed by this process'));
  }

  /** Ends the connection and every task that waits on it. Returns the reason of the first end. */
  break(reason: Error): Error {
    if (this.#over) return this.#over;
    this.#over = reason;
    clearInterval(this.#timer);
    clearTimeout(this.#idle);
    this.#socket?.terminate();
    this.#ready.reject(reason);
    for (const task of this.#tasks.values()) {
      task.ended.reject(reason);
      task.wake();
    }
    this.#tasks.clear();
    return reason;
  }

  async #write(number: number, task: RunningTask, chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length && this.#tasks.get(number) === task; at += largestPayload) {
      while (task.credit <= 0 && this.#tasks.get(number) === task) {
        await new Promise<void>((resolve) => {
          task.wake = resolve;
        });
      }
      const part = chunk.subarray(at, at + largestPayload);
      task.credit -= part.length;
      this.#send(encodeFrame(frameKinds.input, number, part));
    }
  }

  /** A keeper that was not ready yet, or that took this process for dead, has ended for reasons of its own. */
  #endOf(report: string): Error {
    this.#noteSilence();
    return new KeeperEnd(this.#words, report, this.#isReady && !this.#wasSilent);
  }

  #noteSilence(): void {
    if (Date.now() - this.#lastBeatMs > lostAfterMs) this.#wasSilent = true;
  }

  #takeAll(bytes: Buffer): void {
    this.#unanswered = 0;
    try {
      for (const frame of this.#decode(bytes)) this.#take(frame);
    } catch (cause) {
      this.break(new KeeperFailure(`what the keeper sends cannot be read: ${errorMessage(cause)}`, { cause }));
    }
  }

  #take({ kind, task: number, payload }: Frame): void {
    if (kind === frameKinds.ready) {
      this.#isReady = true;
      this.#ready.resolve();
      this.#waitIdle();
    }
    const task = this.#tasks.get(number);
    if (task === undefined) return;
    if (kind === frameKinds.stdout) task.output.onStdout(payload);
    else if (kind === frameKinds.stderr) task.output.onStderr(payload);
    else if (kind === frameKinds.credit) {
      task.credit += Number(payload.toString());
      task.wake();
    } else if (kind === frameKinds.exit) {
      const end = taskEnd.parse(JSON.parse(payload.toString()));
      this.#tasks.delete(number);
      if (end.heldBy === undefined) task.ended.resolve(end);
      else task.ended.reject(heldElsewhere(end.heldBy, this.#root));
      task.wake();
      this.#waitIdle();
    }
  }

  #waitIdle(): void {
    clearTimeout(this.#idle);
    if (this.#tasks.size === 0 && !this.#over) this.#idle = setTimeout(() => this.close(), idleMs);
  }

  #beat(): void {
    if (Date.now() - this.#lastPongMs > lostAfterMs) {
      this.break(new Error(`no answer for ${lostAfterMs / 1000} s`));
      return;
    }
    this.#noteSilence();
    this.#lastBeatMs = Date.now();
    if (this.#root && this.#unanswered >= mostUnanswered) {
      this.break(new KeeperFailure(`the keeper did not answer ${this.#unanswered} times`));
      return;
    }
    if (this.#isReady) this.#unanswered += 1;
    this.#socket?.ping();
    this.#send(encodeFrame(frameKinds.alive, 0));
  }

  #send(frame: Buffer): void {
    if (this.#over || this.#socket === undefined) return;
    const message = Buffer.allocUnsafe(frame.length + 1);
    message.writeUInt8(stdinStream, 0);
    frame.copy(message, 1);
    this.#socket.send(message);
  }
}
