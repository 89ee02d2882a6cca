/**
 * Who runs what in a container, all without capabilities, so that none can touch the processes of another:
 * the keeper holds PID 1, the claims, the results and the logs; the grader is the image's root, as task packs expect;
 * the agent has a uid of its own per container, because the kernel counts processes per uid over the whole host.
 */
import { createHash } from 'node:crypto';
import type { Account } from '../sandbox.ts';

const keeperUid = 64_001;
const graderUid = 0;
/** Below 2^18: a tar header holds no larger uid. */
const firstAgentUid = 120_000;
const agentUids = 140_000;

export type Role = Account | 'keeper';

export const keeperId = keeperUid;

export function uidOf(sandbox: string, role: Role): number {
  if (role === 'keeper') return keeperUid;
  if (role === 'grader') return graderUid;
  return firstAgentUid + (createHash('sha256').update(sandbox).digest().readUInt32BE(0) % agentUids);
}

export const homeOf = (account: Account): string => (account === 'agent' ? '/home/agent' : '/root');
