import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants } from 'node:os';
import {
  createFrameDecoder,
  encodeFrame,
  frameKinds,
  type Holder,
  largestPayload,
  type SentRequest,
  type TaskEnd,
  windowBytes,
} from './frames.ts';

// Runs in a Pod, at the other end of the host's one connection to it, under a uid of its own that neither the agent nor the
// grader can signal. It has the capabilities to become another account, and starts every command through a program that drops
// them. It ends with its connection; what it has started continues.
//
//     keeper <JSON of Settings>

const lostAfterMs = 120_000;
const readyPollMs = 10;
/** The time that what a command has left may hold its output open. */
const outputGraceMs = 500;
/** The bytes that a pipe holds at most, unless root has allowed more. */
const largestPipe = 2 ** 20;
const mostRounds = 100;
const goneAttempts = 500;
const gonePauseMs = 10;

interface Settings {
  /** The file that tells that the sandbox is set up. */
  readonly ready: string;
  /** The program that drops capabilities. */
  readonly drop: readonly string[];
  /** The file with the sandbox's `Holder`, which all keepers of a Pod share; missing until a host adopts the sandbox. */
  readonly holder: string;
}

interface Running {
  readonly child: ChildProcess;
  /** The bytes that the host takes now, and those that it wants at all. */
  readonly credits: { stdout: number; stderr: number };
  readonly left: { stdout: number; stderr: number };
  released: boolean;
}

const { ready, drop, holder }: Settings = JSON.parse(process.argv[1] ?? '');
const tasks = new Map<number, Running>();
let lastSignMs = Date.now();

const send = (kind: number, task: number, payload?: Uint8Array | string): void =>
  void process.stdout.write(encodeFrame(kind, task, payload));
const sendEnd = (task: number, end: TaskEnd): void => send(frameKinds.exit, task, JSON.stringify(end));

/** Returns the token of the host that holds the sandbox, if a request of another host is refused for it. */
function otherHolder(request: SentRequest): string | undefined {
  if (!existsSync(holder)) return undefined;
  const { token, order }: Holder = JSON.parse(readFileSync(holder, 'utf8'));
  const mayPass = token === request.by || (request.do === 'hold' && request.order > order);
  return mayPass ? undefined : token;
}

function hold({ by, order }: SentRequest & { readonly do: 'hold' }): void {
  const next: Holder = { token: by ?? '', order };
  writeFileSync(`${holder}.${process.pid}`, JSON.stringify(next), { mode: 0o600 });
  renameSync(`${holder}.${process.pid}`, holder);
}

function start(task: number, request: SentRequest): void {
  const heldBy = otherHolder(request);
  if (heldBy !== undefined) {
    sendEnd(task, { code: 1, heldBy });
    return;
  }
  if (request.do === 'hold') {
    hold(request);
    sendEnd(task, { code: 0 });
    return;
  }
  if (request.do === 'end-all') {
    endAll(request.uid, (code) => sendEnd(task, { code }));
    return;
  }
  const { uid, capabilities: wanted = [], argv, env, stdin, sentBytes } = request;
  const output = sentBytes === 0 ? 'ignore' : 'pipe';
  const [program = '', ...words] = drop;
  const account = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--no-new-privs'];
  const kept = ['-all', ...wanted.map((one) => `+${one}`)].join(',');
  const capabilities = ['--ambient-caps=-all', '--inh-caps=-all', `--bounding-set=${kept}`];
  const child = spawn(program, [...words, ...account, ...capabilities, ...argv], {
    cwd: '/',
    detached: true,
    env,
    stdio: [stdin ? 'pipe' : 'ignore', output, output],
  });
  const most = sentBytes ?? Number.POSITIVE_INFINITY;
  const credits = { stdout: windowBytes, stderr: windowBytes };
  const running: Running = { child, credits, left: { stdout: most, stderr: most }, released: false };
  tasks.set(task, running);
  for (const name of ['stdout', 'stderr'] as const) passOn(task, running, name);
  child.stdin?.on('error', () => undefined); // a command that has ended needs no input
  child.on('error', (error) => finish(task, { code: 127, error: error.message }));
  child.on('close', (code, signal) => {
    finish(task, { code: code ?? 128 + (signal === null ? 0 : constants.signals[signal]) });
  });
  child.on('exit', () => {
    for (const stream of [child.stdout, child.stderr]) {
      if (stream instanceof Socket) setTimeout(() => closeOutput(running, stream), outputGraceMs);
    }
  });
}

function finish(task: number, end: TaskEnd): void {
  if (tasks.delete(task)) sendEnd(task, end);
}

/** Sends what a command writes, as far as the host has taken what was sent before. */
function passOn(task: number, running: Running, name: 'stdout' | 'stderr'): void {
  running.child[name]?.on('data', (read: Buffer) => {
    const chunk = read.subarray(0, running.left[name]);
    if (running.released || chunk.length === 0) return;
    running.left[name] -= chunk.length;
    for (let at = 0; at < chunk.length; at += largestPayload) {
      send(frameKinds[name], task, chunk.subarray(at, at + largestPayload));
    }
    running.credits[name] -= chunk.length;
    if (running.credits[name] <= 0) running.child[name]?.pause();
  });
}

/**
 * Closes an output that a process which was left behind holds open; what waits for the host goes first. What the command wrote
 * itself may still be in the pipe, however long ago it ended, so an output ends with a turn of the event loop that brings nothing.
 */
function closeOutput(running: Running, stream: Socket, mostBytes = largestPipe): void {
  if (stream.isPaused() && !running.released) {
    setTimeout(() => closeOutput(running, stream, mostBytes), outputGraceMs);
    return;
  }
  const before = stream.bytesRead;
  setImmediate(() => {
    const read = stream.bytesRead - before;
    if (stream.isPaused() || (read > 0 && read < mostBytes)) closeOutput(running, stream, mostBytes - read);
    else stream.destroy();
  });
}

function credit(running: Running, payload: string): void {
  const [name, bytes] = payload.split(' ');
  if (name !== 'stdout' && name !== 'stderr') return;
  running.credits[name] += Number(bytes);
  if (running.credits[name] > 0) running.child[name]?.resume();
}

function release(running: Running): void {
  running.released = true;
  running.child.stdout?.resume();
  running.child.stderr?.resume();
}

function input(task: number, running: Running | undefined, payload: Buffer): void {
  const taken = (): void => send(frameKinds.credit, task, String(payload.length));
  const stdin = running?.child.stdin;
  if (stdin?.writable) stdin.write(payload, taken);
  else taken();
}

/** Ends every process of a uid. They are stopped first, so that none can start another or fight back meanwhile. */
function endAll(uid: number | null, done: (code: number) => void): void {
  const stopped = new Set<number>();
  for (let round = 0; round < mostRounds; round++) {
    const before = stopped.size;
    for (const pid of processesOf(uid)) {
      signal(pid, 'SIGSTOP');
      stopped.add(pid);
    }
    if (stopped.size === before) break;
  }
  const look = (attempt: number): void => {
    const left = [...processesOf(uid)];
    for (const pid of left) signal(pid, 'SIGKILL');
    if (left.length === 0 || attempt === goneAttempts) done(left.length === 0 ? 0 : 1);
    else setTimeout(() => look(attempt + 1), gonePauseMs);
  };
  look(0);
}

function signal(pid: number, name: 'SIGSTOP' | 'SIGKILL'): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}

/**
 * The processes of a uid, without those that have ended and were not yet waited for. Each is read only when it is asked for, so
 * that a signal reaches it before it has ended.
 */
function* processesOf(uid: number | null): Generator<number> {
  for (const name of readdirSync('/proc')) {
    if (/^\d+$/.test(name) && belongsTo(name, uid)) yield Number(name);
  }
}

function belongsTo(one: string, uid: number | null): boolean {
  try {
    const status = readFileSync(`/proc/${one}/status`, 'utf8');
    if (/^State:\s+[ZX]/m.test(status)) return false;
    const uids = /^Uid:\s+(\d+)\s+(\d+)/m.exec(status)?.slice(1) ?? [];
    // Keepers, and the recorders that they start, have this keeper's own uid.
    if (uid === null) return one !== '1' && !uids.includes(String(process.getuid?.()));
    return uids.includes(String(uid));
  } catch {
    return false;
  }
}

function take(kind: number, task: number, payload: Buffer): void {
  const running = tasks.get(task);
  if (kind === frameKinds.alive) send(frameKinds.alive, 0);
  else if (kind === frameKinds.start) start(task, JSON.parse(payload.toString()));
  else if (kind === frameKinds.input) input(task, running, payload);
  else if (running === undefined) return;
  else if (kind === frameKinds.inputEnd) running.child.stdin?.end();
  else if (kind === frameKinds.credit) credit(running, payload.toString());
  else if (kind === frameKinds.release) release(running);
}

const decode = createFrameDecoder();
process.stdin.on('data', (chunk: Buffer) => {
  lastSignMs = Date.now();
  for (const { kind, task, payload } of decode(chunk)) take(kind, task, payload);
});
process.stdin.on('close', () => process.exit(0));
process.stdout.on('error', () => process.exit(0));
setInterval(() => {
  if (Date.now() - lastSignMs > lostAfterMs) process.exit(0);
}, lostAfterMs / 4);

const waitForSetUp = (): void => {
  if (existsSync(ready)) send(frameKinds.ready, 0);
  else setTimeout(waitForSetUp, readyPollMs);
};
waitForSetUp();
