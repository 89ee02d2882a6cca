import type { Account } from '../sandbox.ts';
import { keeperId, type Role, uidOf } from '../shell/accounts.ts';

/** `root` sets a sandbox up. No code of a task or an agent ever runs as root: envd does, and a root could end it. */
export type E2bRole = Role | 'root';

/** The names under which envd knows the accounts. */
export const userOf: Readonly<Record<E2bRole, string>> = {
  root: 'root',
  keeper: 'temper-keeper',
  grader: 'temper-grader',
  agent: 'temper-agent',
};

const graderId = 64_002;

export function idOf(sandbox: string, role: Account | 'keeper'): number {
  if (role === 'keeper') return keeperId;
  return role === 'grader' ? graderId : uidOf(sandbox, role);
}
