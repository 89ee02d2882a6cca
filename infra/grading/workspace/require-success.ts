import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { ExecResult } from '../../sandbox/sandbox.ts';

/** What prepares a workspace must succeed: nobody but the task has had a hand in it yet. Throws SetupFailed. */
export function requireSuccess(result: ExecResult, what: string): void {
  if (result.exitCode === 0 && !result.timedOut) return;
  const how = result.timedOut ? 'ran out of time' : `ended with exit code ${result.exitCode}`;
  const said = result.stderr.toString('utf8').trim().slice(-300);
  throw new TemperFailure(
    'SetupFailed',
    `${what} ${how}: ${said || 'it said nothing'}; does the image hold git and a shell?`,
  );
}
