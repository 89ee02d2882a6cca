import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Account, ProcessStatus, Sandbox } from '../sandbox/sandbox.ts';

/** Tests that ended, or did not in their time. */
export type TestEnd = Extract<ProcessStatus, { state: 'running' | 'exited' }>;

/** Nobody knows what tests said whose end nobody saw: that is the host's failure, and another try. Throws SandboxUnavailable. */
export function requireEnd(status: ProcessStatus): TestEnd {
  if (status.state === 'running' || status.state === 'exited') return status;
  const got = status.state === 'unknown' ? status.evidence : 'they were never started';
  throw new TemperFailure('SandboxUnavailable', `expected to hear how the tests ended, got: ${got}`);
}

/** Ends what the tests left behind, also what left their group: all that their account has is theirs. */
export async function endTests(
  sandbox: Pick<Sandbox, 'kill' | 'killProcesses'>,
  key: string,
  account: Account,
  { state }: TestEnd,
): Promise<void> {
  await sandbox.killProcesses(account);
  // Their log is whole once their end is recorded.
  if (state === 'running') await sandbox.kill(key);
}
