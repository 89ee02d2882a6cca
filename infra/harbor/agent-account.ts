import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { TaskToml } from './task-toml.ts';

type Account = string | number | undefined;

/** Whether an account is root. */
export const isRoot = (user: Account): boolean => user === 'root' || user === '0' || user === 0;

/**
 * Whether the agent of a task is to be root. Any other account of the image is replaced by the agent's own, which has no more
 * rights. Throws UnsupportedTask where the agents of only some steps are root: all work in one sandbox.
 */
export function agentIsRoot({ agent, steps }: Pick<TaskToml, 'agent' | 'steps'>): boolean {
  const others = steps.filter((step) => !isRoot(step.agent.user ?? agent.user));
  const [first] = others;
  if (first === undefined) return steps.length > 0 || isRoot(agent.user);
  if (others.length === steps.length) return false;
  const expected = 'root in all steps or in none, since their agents share a sandbox that one who is root can change';
  const got = `another account in ${first.name}`;
  throw new TemperFailure('UnsupportedTask', `task.toml: steps: agent.user: expected ${expected}, got ${got}`);
}
