import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { asTimeWasOver } from '../../sandbox/exit-status.ts';
import type { Account, ProcessStatus, Sandbox } from '../../sandbox/sandbox.ts';
import type { GradedTask } from '../task.ts';

/** The key of the tests' process in the sandbox of an evaluation. */
export const testsKey = 'tests';

/** The account of a task's tests: the grader, unless they are judged by their log and load the code under test. */
export const testAccount = ({ grading, codeAsAgent }: Pick<GradedTask, 'grading' | 'codeAsAgent'>): Account =>
  grading === null || codeAsAgent ? 'grader' : 'agent';

/** The status of tests that exited or ran out of time. */
export type TestEnd = Extract<ProcessStatus, { state: 'running' | 'exited' }>;

/**
 * Returns the status of tests whose end was observed, or `running` if an earlier activity attempt ended them because their time was
 * over. Any other is the host's failure: throws SandboxUnavailable, to retry.
 */
export function requireEnd(observed: ProcessStatus): TestEnd {
  const status = asTimeWasOver(observed);
  if (status.state === 'running' || status.state === 'exited') return status;
  const got = status.state === 'unknown' ? status.evidence : 'they were never started';
  throw new TemperFailure(
    'SandboxUnavailable',
    `how the tests ended is unknown: ${got}; the evaluation is retried in a new sandbox`,
  );
}

/** Ends every process that the tests left behind, also outside their process group: the account's processes are theirs. */
export async function endTests(
  sandbox: Pick<Sandbox, 'noteTimeOver' | 'kill' | 'killProcesses'>,
  account: Account,
  { state }: TestEnd,
): Promise<void> {
  // Another activity attempt would otherwise believe a reward that tests wrote before they hung.
  if (state === 'running') await sandbox.noteTimeOver(testsKey);
  await sandbox.killProcesses(account);
  // The log of a running process is complete only once its end is recorded.
  if (state === 'running') await sandbox.kill(testsKey);
}
