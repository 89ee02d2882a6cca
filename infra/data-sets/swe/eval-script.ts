/** A published evaluation script without its clean-up. */
export interface EvalScript {
  /** The part that prepares the repository. */
  readonly prepare: string;
  /** The part that runs the tests; its status is theirs. */
  readonly command: string;
}

const isMarker = (line: string, which: 'Start' | 'End'): boolean =>
  new RegExp(`^\\s*(?::|echo) +(['"])>>>>> ${which} Test Output\\1\\s*$`).test(line);
/** A line `NAME=$?`, which saves the status of the tests and would itself end with status 0. */
const savesStatus = /^\s*\w+=\$\?\s*$/;

/**
 * Splits a published script at the two marker lines around the output of its tests, so that the status of the middle part is
 * that of the tests. A script without both markers is treated as the tests alone.
 */
export function splitEvalScript(script: string): EvalScript {
  const lines = script.split('\n');
  const start = lines.findIndex((line) => isMarker(line, 'Start'));
  const end = lines.findIndex((line) => isMarker(line, 'End'));
  if (start === -1 || end < start) return { prepare: '', command: script };
  const command = lines.slice(start + 1, end).filter((line) => line.trim() !== '');
  if (savesStatus.test(command.at(-1) ?? '')) command.pop();
  return { prepare: `${lines.slice(0, start).join('\n')}\n`, command: `${command.join('\n')}\n` };
}
