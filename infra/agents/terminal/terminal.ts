import { createEmulator, type Emulator } from './emulator.ts';
import { applicationKeys } from './keys.ts';
import { type Pty, type PtyOptions, startPty } from './pty.ts';
import { until } from './until.ts';
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
const waits = { quietMs: 150, leastMs: 300, startMs: 10_000 } as const;

/** The setting that makes bash announce each prompt by a sequence that terminals read and do not show. */
const promptCommand = String.raw`printf '\033]133;A\033\\'`;

/** Leaves the screen of a full-screen program that ended with the shell. */
const leave = '\x1b[?1049l';
/** Resets the modes that programs have set, and says what happened. */
const endedNote = '\x1b[!p\r\n[the shell has ended; the next keystrokes go to a new one]\r\n';

export async function openTerminal({ workdir, environment, directory }: TerminalOptions): Promise<Terminal> {
  const view = createView();
  let lastDataAt = 0;
  let pty: Pty;
  /** Resolves when the screen shows that the shell has ended. */
  let over = Promise.withResolvers<void>();
  const emulator: Emulator = createEmulator(size, {
    onScroll: (line) => view.keep(line),
    onAnswer: (text) => pty.answer(text),
  });

  async function start(): Promise<void> {
    const { prompts } = emulator;
    lastDataAt = 0;
    over = Promise.withResolvers();
    pty = startPty({
      size,
      workdir,
      directory,
      environment: { LANG: 'C.UTF-8', ...environment, TERM: 'xterm', PROMPT_COMMAND: promptCommand },
      onData: async (bytes) => {
        await emulator.write(bytes);
        lastDataAt = performance.now();
      },
      onEnd: () => void sayEnded().then(over.resolve),
    });
    // Bash announces a prompt before it prints it; another shell announces none.
    const isReady = () => (emulator.prompts > prompts && isQuiet()) || isQuiet(10 * waits.quietMs);
    await until(() => pty.ended || isReady(), waits.startMs);
  }

  async function sayEnded(): Promise<void> {
    // What was printed before may not be on the screen yet.
    await emulator.write(Buffer.of());
    await emulator.write(Buffer.from(emulator.alternate ? leave + endedNote : endedNote));
  }

  const isQuiet = (ms: number = waits.quietMs): boolean =>
    !emulator.writing && lastDataAt > 0 && performance.now() - lastDataAt >= ms;

  async function type(text: string, waitMs: number): Promise<void> {
    if (pty.ended) await start();
    const { prompts } = emulator;
    if (text !== '') pty.write(emulator.applicationKeys ? applicationKeys(text) : text);
    const mostMs = text === '' ? waitMs : Math.max(waitMs, waits.leastMs);
    // Of several commands, all but the last one end with a prompt, too; the next one is in its line then.
    await until(() => pty.ended || (emulator.prompts > prompts && emulator.atPrompt && isQuiet()), mostMs);
    if (pty.ended) await over.promise;
  }

  await start();
  return {
    type,
    show: () => view.show(emulator),
    close: () => pty.kill(),
  };
}
