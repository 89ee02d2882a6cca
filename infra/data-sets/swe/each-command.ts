import { nextCommand } from '../../grading/resolution/eval-section.ts';

/**
 * One after the other, in one shell, whatever the one before came to: a failing test of the first must not hide those of the
 * second. The status is a failure's, if any failed: an honest report names it.
 */
export function eachCommand(commands: readonly string[]): string {
  const [only = ''] = commands;
  if (commands.length < 2) return only;
  const keep = 'temper_last=$?; [ "$temper_last" -eq 0 ] || temper_failed=$temper_last';
  const each = commands.map((command) => `${command}\n${keep}`).join(`\n${nextCommand}\n`);
  return `temper_failed=0\n${each}\n(exit "$temper_failed")`;
}
