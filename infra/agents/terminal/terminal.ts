import { setTimeout as sleep } from 'node:timers/promises';
import { createEmulator, type Emulator } from './emulator.ts';
import { type Pty, type PtyOptions, startPty } from './pty.ts';
import { createView } from './view.ts';

/** The terminal of an agent: one shell, with what it shows. */
export interface Terminal {
  /**
   * Sends text and waits for a time, or until the shell has a new prompt and nothing more is printed. A shell that has ended is
   * replaced first.
   */
  type(text: string, waitMs: number): Promise<void>;
  /** Returns what is new for the model. */
  show(): string;
  /** Ends the shell and what runs at its terminal. */
  close(): void;
}

export type TerminalOptions = Pick<PtyOptions, 'workdir' | 'environment' | 'directory'>;

/** The size of the terminal, which is the same in terminal-bench's agent. */
export const size = { rows: 40, columns: 160 } as const;

/**
 * Waits end when a prompt was shown and nothing was printed for `quietMs`. On a busy machine a shell may be slow to start, and
 * a program to answer: a wait after keystrokes takes at least `leastMs`, unless a prompt comes.
 */
const waits = { stepMs: 20, quietMs: 150, leastMs: 300, startMs: 10_000 } as const;

/** The setting that makes bash announce each prompt by a sequence that terminals read and do not show. */
const promptCommand = String.raw`printf '\033]133;A\033\\'`;

/** Leaves the screen of a full-screen program that ended with the shell, keeps the cursor, and says what happened. */
const endedNote = '\x1b[?1049l\x1b7\x1b[r\x1b8\x1b(B\r\n[the shell has ended; the next keystrokes go to a new one]\r\n';

export async function openTerminal({ workdir, environment, directory }: TerminalOptions): Promise<Terminal> {
  const view = createView();
  let lastDataAt = 0;
  let pty: Pty;
  const emulator: Emulator = createEmulator(size, {
    onScroll: (line) => view.keep(line),
    onAnswer: (text) => pty.answer(text),
  });

  async function start(): Promise<void> {
    const { prompts } = emulator;
    lastDataAt = 0;
    pty = startPty({
      size,
      workdir,
      directory,
      environment: { LANG: 'C.UTF-8', ...environment, TERM: 'xterm', PROMPT_COMMAND: promptCommand },
      onData: (bytes) => {
        lastDataAt = performance.now();
        emulator.write(bytes);
      },
      onEnd: () => emulator.write(Buffer.from(endedNote)),
    });
    // Bash announces a prompt before it prints it; another shell announces none.
    const isReady = () => (emulator.prompts > prompts && isQuiet()) || isQuiet(10 * waits.quietMs);
    await until(() => pty.ended || isReady(), waits.startMs);
  }

  const isQuiet = (ms: number = waits.quietMs): boolean => lastDataAt > 0 && performance.now() - lastDataAt >= ms;

  async function type(text: string, waitMs: number): Promise<void> {
    if (pty.ended) await start();
    const { prompts } = emulator;
    if (text !== '') pty.write(text);
    const mostMs = text === '' ? waitMs : Math.max(waitMs, waits.leastMs);
    // Of several commands, all but the last one end with a prompt, too; the next one is in its line then.
    await until(() => pty.ended || (emulator.prompts > prompts && emulator.atPrompt && isQuiet()), mostMs);
    if (pty.ended) await sleep(2 * waits.quietMs);
  }

  await start();
  return {
    type,
    show: () => view.show(emulator),
    close: () => pty.kill(),
  };
}

async function until(condition: () => boolean, mostMs: number): Promise<void> {
  const deadline = performance.now() + mostMs;
  while (!condition() && performance.now() < deadline) {
    await sleep(Math.max(0, Math.min(waits.stepMs, deadline - performance.now())));
  }
}
