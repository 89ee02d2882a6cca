import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { ExecResult } from '../../sandbox/sandbox.ts';

/** Throws SetupFailed unless a command of the task's own succeeded. No agent code has run yet. */
export function requireTaskSuccess(result: ExecResult, command: string): void {
  if (result.exitCode === 0 && !result.timedOut) return;
  const end = result.timedOut ? 'ran out of time' : `ended with exit code ${result.exitCode}`;
  throw new TemperFailure('SetupFailed', `${command} ${end}: ${outputOf(result)}`);
}

/**
 * Throws unless a command of temper's own succeeded: SetupFailed if the image or the task's files made it fail, and
 * SandboxUnavailable if it ran out of time, for which a busy host is to blame.
 */
export function requireSuccess(result: ExecResult, command: string): void {
  if (result.timedOut) throw outOfTime(command);
  if (result.exitCode === 0) return;
  const end = `ended with exit code ${result.exitCode}: ${outputOf(result)}`;
  throw new TemperFailure('SetupFailed', `${command} ${end}; does the image contain git and a shell?`);
}

/** The failure of a command of temper's own that ran out of time. */
export const outOfTime = (command: string): TemperFailure =>
  new TemperFailure(
    'SandboxUnavailable',
    `${command} ran out of time, since the sandbox or its host is too busy; the stage is retried`,
  );

const outputOf = ({ stderr }: ExecResult): string => stderr.toString('utf8').trim().slice(-300) || 'no output';
