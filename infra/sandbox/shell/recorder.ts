import { setTimeout as delay } from 'node:timers/promises';
import { exitStatus, isLimit, killedCode } from '../exit-status.ts';
import { SandboxFailure } from '../failure.ts';
import type { ProcessStatus } from '../sandbox.ts';
import * as scripts from './scripts.ts';
import type { Shell } from './shell.ts';

const liveTimeoutMs = 30_000;
const never = new AbortController().signal;
const lineFeed = 10;

/** The end of a recorder's output, behind the result of its process. */
export interface Epilogue {
  /** Whether nothing was left in the sandbox but what temper keeps running there. */
  readonly quiet: boolean;
  /** The whole log; undefined if it was not sent. */
  readonly log: Buffer | undefined;
}

/** The reports of the recorder of one detached process to this process. */
export interface Recorder {
  readonly claimed: Promise<'claimed' | 'already-started'>;
  readonly live: Promise<void>;
  /** Undefined if the stream broke before the end; the keeper's files then have the result. */
  readonly ended: Promise<ProcessStatus | undefined>;
  /** Undefined if the stream broke before it was complete. */
  readonly epilogue: Promise<Epilogue | undefined>;
}

/** Starts a recorder and reads its output. The recorder outlives this process. */
export function startRecorder(shell: Shell, args: readonly string[]): Recorder {
  const broken = new AbortController();
  const output = createOutput((error) => broken.abort(error));
  const script = { role: 'keeper', text: scripts.recorder, args } as const;
  const listening = shell.follow(script, output.push, broken.signal).finally(output.close);
  /** Reads a line. Rejects if the stream broke before it. */
  const line = async (index: number): Promise<string | undefined> => {
    const text = await output.line(index);
    if (text === undefined) await listening;
    return text;
  };
  const claimed = line(0).then(async (text) => {
    if (text === 'claimed' || text === 'already-started') return text;
    // A recorder that could not be started may have said why.
    await withTimeout(listening, liveTimeoutMs, never);
    throw new SandboxFailure('Internal', `expected the recorder to claim ${args[0]}, got ${JSON.stringify(text)}`);
  });
  const live = claimed.then(async () => {
    if ((await withTimeout(line(1), liveTimeoutMs, never)) === 'live') return;
    throw new SandboxFailure('Internal', `expected ${args[0]} to run within ${liveTimeoutMs} ms, got nothing`);
  });
  const ended = live.then(() => line(2)).then((text) => (text === undefined ? undefined : parseStatus(text)));
  const epilogue = live.then(() => listening).then(async () => parseEpilogue(await output.line(3), output.rest()));
  live.catch(() => undefined);
  listening.catch(() => undefined);
  return { claimed, live, ended: ended.catch(() => undefined), epilogue: epilogue.catch(() => undefined) };
}

function parseEpilogue(header: string | undefined, log: Buffer): Epilogue | undefined {
  const [state, size = ''] = header?.split(' ') ?? [];
  if (state !== 'quiet' && state !== 'busy') return undefined;
  return { quiet: state === 'quiet', log: state === 'quiet' && log.length === Number(size) ? log : undefined };
}

/** The number of lines that a recorder writes before the log, and the longest that one can be: they hold words and numbers. */
const headerLines = 4;
const lineBytes = 1_024;
/** An empty view of a chunk would keep the 64 KB of memory that the chunk is part of, for as long as the process runs. */
const nothing: Buffer = Buffer.alloc(0);

/**
 * Splits a recorder's output into its lines and the log behind them. Output that no recorder writes is dropped and reported: an
 * agent that is root may have replaced the programs of its sandbox.
 */
function createOutput(onForeign: (error: SandboxFailure) => void) {
  const lines: string[] = [];
  let rest = nothing;
  let closed = false;
  let wake: () => void = () => undefined;
  let changed = Promise.resolve();
  const arm = (): void => {
    changed = new Promise((resolve) => {
      wake = resolve;
    });
  };
  arm();
  const notify = (): void => {
    wake();
    arm();
  };
  return {
    push: (chunk: Buffer): void => {
      if (closed) return;
      rest = Buffer.concat([rest, chunk]);
      while (lines.length < headerLines) {
        const end = rest.subarray(0, lineBytes).indexOf(lineFeed);
        if (end < 0) break;
        lines.push(rest.subarray(0, end).toString('utf8'));
        rest = end + 1 === rest.length ? nothing : rest.subarray(end + 1);
      }
      if (rest.length > (lines.length < headerLines ? lineBytes : scripts.sentLogBytes)) {
        rest = nothing;
        closed = true;
        onForeign(foreignOutput(lines.length));
      }
      notify();
    },
    close: (): void => {
      closed = true;
      notify();
    },
    /** Resolves with a line once it was written; with undefined if the output ends before. */
    line: async (index: number): Promise<string | undefined> => {
      while (lines.length <= index && !closed) await changed;
      return lines[index];
    },
    rest: (): Buffer => rest,
  };
}

/** Returns the promise's value if it resolves in time, otherwise undefined. */
export async function withTimeout<T>(
  promise: Promise<T>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<T | undefined> {
  const over = new AbortController();
  const late = delay(timeoutMs, undefined, { signal: AbortSignal.any([over.signal, signal]) });
  try {
    return await Promise.race([promise, late]);
  } finally {
    late.catch(() => undefined);
    over.abort();
  }
}

function foreignOutput(lines: number): SandboxFailure {
  const [part, most] = lines < headerLines ? ['a line', lineBytes] : ['a log', scripts.sentLogBytes];
  const text = `expected ${part} of at most ${most} bytes from the recorder of a process, got more after ${lines} lines`;
  return new SandboxFailure('Internal', text);
}

export function parseStatus(output: string): ProcessStatus {
  const [state, first = '', ...rest] = output.trim().split(' ');
  if (state === 'absent') return { state };
  if (state === 'running') return { state };
  if (state === 'exited') {
    const limit = rest[0];
    // Anything but a number was written by what ran in the sandbox.
    const exitCode = exitCodeText.test(first) ? Number(first) : killedCode;
    return { state, ...exitStatus({ exitCode, ...(isLimit(limit) ? { limit } : {}) }) };
  }
  if (state === 'unknown') return { state, evidence: [first, ...rest].join(' ') };
  throw new SandboxFailure('Internal', `expected a process status, got ${JSON.stringify(output)}`);
}

const exitCodeText = /^\d{1,3}$/;
