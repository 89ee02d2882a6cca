import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Size } from './emulator.ts';
import { until } from './until.ts';

/** A shell at a terminal. */
export interface Pty {
  write(text: string): void;
  /** Writes what the terminal answers to a program. Answers that come too often are dropped. */
  answer(text: string): void;
  /** Whether the shell has ended. */
  readonly ended: boolean;
  /** Ends the shell's terminal. */
  kill(): void;
}

export interface PtyOptions {
  readonly size: Size;
  readonly workdir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** A directory for files that exist only for a moment. */
  readonly directory: string;
  /** Takes output. No more is read until the promise resolves. */
  readonly onData: (bytes: Buffer) => Promise<void>;
  readonly onEnd: () => void;
}

/** Programs that can open a terminal, one of which the image must have. */
export const ptyPrograms = ['script', 'python3'] as const;

/** The command of a terminal. `-ixon`: Ctrl-S would stop the output without a sign of it. */
const start = ({ rows, columns }: Size): string =>
  `stty sane rows ${rows} cols ${columns} -ixon; SHELL=$(command -v bash || command -v sh); export SHELL; exec "$SHELL"`;

/** Runs $1 at a terminal. Node cannot open a terminal without native code, and nearly every image has one of these programs. */
const open = `
command -v script >/dev/null && SHELL=/bin/sh exec script -qfc "$1" /dev/null
command -v python3 >/dev/null && exec python3 -c 'import pty, sys; pty.spawn(["/bin/sh", "-c", sys.argv[1]])' "$1"
echo 'expected script or python3 in the image, got neither'; exit 127
`;

/**
 * Answers that are given at once, and then in a second: many more than programs ask for that read them. Answers that no program reads
 * would fill the memory of `script`, which keeps all of its input until the terminal takes it.
 */
const answers = { atOnce: 1_000, perSec: 100 } as const;

/** A pause after much output, so that a command that prints without end leaves the processor to others. */
const pause = { bytes: 16_384, ms: 4 } as const;

/**
 * Starts a shell at a terminal. It is connected by two FIFOs that it holds open itself, so that it outlives this process with
 * all that runs at the terminal: tests may need a server that the agent has started there.
 */
export function startPty({ size, workdir, environment, directory, onData, onEnd }: PtyOptions): Pty {
  const { theirs, ours } = openFifos(directory);
  const child = spawn('/bin/sh', ['-c', open, 'sh', start(size)], {
    cwd: workdir,
    env: environment,
    detached: true,
    stdio: [theirs.input, theirs.output, theirs.output],
  });
  closeSync(theirs.input);
  closeSync(theirs.output);
  let ended = false;
  const input = new Socket({ fd: ours.input, readable: false, writable: true });
  const output = new Socket({ fd: ours.output, readable: true, writable: false });
  let taking = false;
  let tookAt = 0;
  output.on('data', async (bytes) => {
    output.pause();
    taking = true;
    await onData(bytes);
    taking = false;
    tookAt = performance.now();
    setTimeout(() => output.resume(), bytes.length < pause.bytes ? 0 : pause.ms);
  });
  const end = (): void => {
    if (ended) return;
    ended = true;
    input.destroy();
    const endedAt = performance.now();
    const isRead = () => !taking && performance.now() - Math.max(tookAt, endedAt) >= lastOutput.quietMs;
    void until(isRead, lastOutput.mostMs).then(() => {
      output.destroy();
      onEnd();
    });
  };
  child.once('exit', end);
  child.once('error', end);
  input.on('error', end);
  output.on('error', end);
  child.unref();
  const mayAnswer = createAllowance(answers);
  const write = (text: string): void => {
    if (!ended) input.write(text);
  };
  return {
    write,
    answer(text) {
      if (mayAnswer()) write(text);
    },
    get ended() {
      return ended;
    },
    kill: () => killGroup(child),
  };
}

/** The times in which the rest of the output is read after the shell has ended. Programs that it left may print without end. */
const lastOutput = { quietMs: 50, mostMs: 5_000 } as const;

/** Creates a function that says whether one more is allowed now, and counts it. */
function createAllowance({ atOnce, perSec }: typeof answers): () => boolean {
  let left: number = atOnce;
  let countedMs = performance.now();
  return () => {
    const nowMs = performance.now();
    left = Math.min(atOnce, left + ((nowMs - countedMs) / 1_000) * perSec);
    countedMs = nowMs;
    if (left < 1) return false;
    left -= 1;
    return true;
  };
}

interface Ends {
  readonly input: number;
  readonly output: number;
}

/** Opens two FIFOs twice, since only this process's ends must not block, and removes their names. */
function openFifos(directory: string): { readonly theirs: Ends; readonly ours: Ends } {
  const at = mkdtempSync(join(directory, '.temper-terminal-'));
  const paths = { input: join(at, 'input'), output: join(at, 'output') };
  try {
    execFileSync('mkfifo', ['-m', '600', paths.input, paths.output]);
    const both = (flags: number): Ends => ({
      input: openSync(paths.input, flags),
      output: openSync(paths.output, flags),
    });
    return { theirs: both(constants.O_RDWR), ours: both(constants.O_RDWR | constants.O_NONBLOCK) };
  } finally {
    rmSync(at, { recursive: true, force: true });
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}
