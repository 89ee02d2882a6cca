import { createHash } from 'node:crypto';
import type { Account } from '../sandbox.ts';

const keeperUid = 64_001;
export const rootUid = 0;
/** The first uid of an agent. Agents' uids stay below 2^18, the largest that a tar header holds. */
const firstAgentUid = 120_000;
const agentUids = 140_000;

/**
 * The accounts of a sandbox, all without capabilities, so that one can't touch another's processes. The keeper owns the claims,
 * results and logs. The grader is the image's root, as task packs expect. The agent has its own uid per sandbox, because the
 * kernel counts processes per uid over the whole machine.
 */
export type Role = Account | 'keeper';

export const keeperId = keeperUid;

export function uidOf(sandbox: string, role: Role): number {
  if (role === 'keeper') return keeperUid;
  if (role === 'grader') return rootUid;
  return firstAgentUid + (createHash('sha256').update(sandbox).digest().readUInt32BE(0) % agentUids);
}

/** The home of an account. In a sandbox whose agent is root both accounts have root's. */
export const homeOf = (account: Account, { root = false }: { readonly root?: boolean | undefined } = {}): string =>
  account === 'agent' && !root ? '/home/agent' : '/root';
