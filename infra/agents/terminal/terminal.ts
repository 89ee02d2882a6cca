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

/** The size of the terminal, that of terminal-bench's agent. */
export const size = { rows: 40, columns: 160 } as const;

/** Waits end when a prompt was shown and nothing was printed for `quietMs`. A shell may be slow to start on a busy machine. */
const waits = { stepMs: 20, quietMs: 150, startMs: 10_000 } as const;

/** Makes bash tell of each prompt by a sequence that terminals know, and do not show. */
const promptCommand = String.raw`printf '\033]133;A\033\\'`;

const endedNote = '[the shell has ended; the next keystrokes go to a new one]';

export async function openTerminal({ workdir, environment, directory }: TerminalOptions): Promise<Terminal> {
  const view = createView();
  let lastDataAt = 0;
  let pty: Pty;
  const emulator: Emulator = createEmulator(size, {
    onScroll: (line) => view.keep(line),
    onAnswer: (text) => pty.write(text),
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
      onEnd: () => emulator.write(Buffer.from(`\r\n${endedNote}\r\n`)),
    });
    // A shell other than bash tells of no prompt.
    await until(() => pty.ended || emulator.prompts > prompts || isQuiet(10 * waits.quietMs), waits.startMs);
  }

  const isQuiet = (ms: number = waits.quietMs): boolean => lastDataAt > 0 && performance.now() - lastDataAt >= ms;

  async function type(text: string, waitMs: number): Promise<void> {
    if (pty.ended) await start();
    const { prompts } = emulator;
    if (text !== '') pty.write(text);
    await until(() => pty.ended || (emulator.prompts > prompts && isQuiet()), waitMs);
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
