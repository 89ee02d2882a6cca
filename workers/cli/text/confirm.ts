import { createInterface } from 'node:readline/promises';
import { UsageError } from './errors.ts';

/** Asks for a confirmation at the terminal. Throws the refusal unless the answer is yes, and UsageError where there is no terminal. */
export async function confirm(question: string, refusal: string): Promise<void> {
  if (!process.stdin.isTTY) throw new UsageError('expected --yes, since there is no terminal to ask for confirmation');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    if (!/^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())) throw new Error(refusal);
  } finally {
    terminal.close();
  }
}
