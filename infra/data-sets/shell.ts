import { nextCommand } from '../grading/resolution/eval-section.ts';

/** Quotes a text as one word of a shell command. */
export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/**
 * Joins test commands into a script that runs all of them in one shell, even after one fails: a failing test of the first
 * must not hide the results of the second. The script's status is that of the last command that failed, or 0.
 */
export function runAll(commands: readonly string[]): string {
  const [only = ''] = commands;
  if (commands.length < 2) return only;
  const keepFailure = 'temper_last=$?; [ "$temper_last" -eq 0 ] || temper_failed=$temper_last';
  const steps = commands.map((command) => `${command}\n${keepFailure}`).join(`\n${nextCommand}\n`);
  return `temper_failed=0\n${steps}\n(exit "$temper_failed")`;
}

/** Shell lines that write reward 1 when the command before them succeeded, else 0, for tests judged by their exit code. */
export const writeExitCodeReward = `passed=$?
mkdir -p /logs/verifier
if [ $passed -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
exit 0
`;
