/** A script that prepares a repository, runs its tests and tidies up, without the last. */
export interface EvalScript {
  readonly prepare: string;
  readonly command: string;
}

const isMark = (line: string, which: 'Start' | 'End'): boolean =>
  new RegExp(`^\\s*(?::|echo) +(['"])>>>>> ${which} Test Output\\1\\s*$`).test(line);
/** `NAME=$?` keeps the status of the tests, and is itself a command that succeeds. */
const keepsStatus = /^\s*\w+=\$\?\s*$/;

/**
 * Takes a published script apart at the lines by which it marks the output of its tests: the status of what stands between
 * them is the tests' own. A script without the two marks is all tests.
 */
export function splitEvalScript(script: string): EvalScript {
  const lines = script.split('\n');
  const start = lines.findIndex((line) => isMark(line, 'Start'));
  const end = lines.findIndex((line) => isMark(line, 'End'));
  if (start === -1 || end < start) return { prepare: '', command: script };
  const command = lines.slice(start + 1, end).filter((line) => line.trim() !== '');
  if (keepsStatus.test(command.at(-1) ?? '')) command.pop();
  return { prepare: `${lines.slice(0, start).join('\n')}\n`, command: `${command.join('\n')}\n` };
}
