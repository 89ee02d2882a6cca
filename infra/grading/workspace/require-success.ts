import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { ExecResult } from '../../sandbox/sandbox.ts';

/** Throws SetupFailed unless a command of the set-up succeeded. Only the task can be at fault: no agent code has run yet. */
export function requireSuccess(result: ExecResult, command: string): void {
  if (result.exitCode === 0 && !result.timedOut) return;
  const end = result.timedOut ? 'ran out of time' : `ended with exit code ${result.exitCode}`;
  const output = result.stderr.toString('utf8').trim().slice(-300);
  throw new TemperFailure(
    'SetupFailed',
    `${command} ${end}: ${output || 'no output'}; does the image contain git and a shell?`,
  );
}
