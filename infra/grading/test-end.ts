import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { ProcessStatus } from '../sandbox/sandbox.ts';

/** Tests that ended, or did not in their time. */
export type TestEnd = Extract<ProcessStatus, { state: 'running' | 'exited' }>;

/** Nobody knows what tests said whose end nobody saw: that is the host's failure, and another try. Throws SandboxUnavailable. */
export function requireEnd(status: ProcessStatus): TestEnd {
  if (status.state === 'running' || status.state === 'exited') return status;
  const got = status.state === 'unknown' ? status.evidence : 'they were never started';
  throw new TemperFailure('SandboxUnavailable', `expected to hear how the tests ended, got: ${got}`);
}
