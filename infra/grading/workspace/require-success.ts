import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { ExecResult } from '../../sandbox/sandbox.ts';
import { wasCutOff } from '../late.ts';

/**
 * Throws SetupFailed unless a command of the task's own succeeded. No agent code has run yet. One that was killed counts as
 * failed, too: its own need of memory is the likely cause.
 */
export function requireTaskSuccess(result: ExecResult, command: string): void {
  if (result.exitCode === 0 && !result.timedOut) return;
  const end = result.timedOut ? 'ran out of time' : `ended with exit code ${result.exitCode}`;
  throw new TemperFailure('SetupFailed', `${command} ${end}: ${outputOf(result)}`);
}

/**
 * Throws unless a command of temper's own succeeded: SetupFailed if the image or the task's files made it fail, and
 * SandboxUnavailable if it was cut off, for which a busy host is to blame.
 */
export function requireSuccess(result: ExecResult, command: string): void {
  if (wasCutOff(result)) throw cutOff(result, command);
  if (result.exitCode === 0) return;
  const end = `ended with exit code ${result.exitCode}: ${outputOf(result)}`;
  throw new TemperFailure('SetupFailed', `${command} ${end}; does the image contain git and a shell?`);
}

/** The failure of a command of temper's own that was cut off. */
export const cutOff = ({ timedOut }: Pick<ExecResult, 'timedOut'>, command: string): TemperFailure =>
  new TemperFailure(
    'SandboxUnavailable',
    timedOut
      ? `${command} ran out of time, since the sandbox or its host is too busy; the stage is retried`
      : `${command} was killed, since the memory of the sandbox or its host is full; the stage is retried`,
  );

const outputOf = ({ stderr }: ExecResult): string => stderr.toString('utf8').trim().slice(-300) || 'no output';
