import type { Tool } from '../mini/tools.ts';
import { type Command, commandOf, toolNames } from './answer.ts';
import { readKeys } from './keys.ts';
import { confirmation } from './prompt.ts';
import type { Terminal } from './terminal.ts';

/** The actions of the model, whether it writes its commands as text or calls tools. */
export interface Desk {
  /** Types commands one after another. */
  type(commands: readonly Command[]): Promise<void>;
  /** Returns what is new on the terminal. */
  show(): string;
  /**
   * Hands the work in if the model says twice in a row that the task is complete. Returns a question to the model the first time,
   * and null the second time.
   */
  complete(): Promise<string | null>;
  /** Forgets that the model said that the task is complete, because it continues. */
  resume(): void;
}

export interface DeskOptions {
  readonly terminal: Terminal;
  readonly longestWaitSec: number;
  /** The host tool that hands the work in; null if there is none. */
  readonly submit: Tool | null;
}

/** Returns the desk, and the tools by which a model that calls tools uses it. */
export function createTools(options: DeskOptions): { readonly desk: Desk; readonly tools: readonly Tool[] } {
  const desk = createDesk(options);
  const type: Tool = {
    name: toolNames.type,
    description: 'Send keystrokes to the terminal and see what is new on it.',
    schema: {
      type: 'object',
      properties: {
        keystrokes: { type: 'string', description: 'a text to type, or the name of a key' },
        duration: { type: 'number', description: 'seconds to wait, 1 by default' },
      },
      required: ['keystrokes'],
    },
    async run(given) {
      const command = commandOf(given);
      if ('problem' in command) return `error: ${command.problem}`;
      desk.resume();
      await desk.type([command]);
      return desk.show();
    },
  };
  const complete: Tool = {
    name: toolNames.complete,
    description: 'Say that all of the task is done.',
    schema: { type: 'object', properties: {}, required: [] },
    run: () => desk.complete(),
  };
  return { desk, tools: [type, complete] };
}

function createDesk({ terminal, longestWaitSec, submit }: DeskOptions): Desk {
  let said = false;
  return {
    async type(commands) {
      for (const { keystrokes, waitSec } of commands) {
        await terminal.type(readKeys(keystrokes), Math.min(waitSec, longestWaitSec) * 1000);
      }
    },
    show: () => terminal.show(),
    async complete() {
      if (!said) {
        said = true;
        return `${terminal.show()}\n\n${confirmation}`;
      }
      return submit === null ? null : submit.run(new Map(), undefined);
    },
    resume() {
      said = false;
    },
  };
}
