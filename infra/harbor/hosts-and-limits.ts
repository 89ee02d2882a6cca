import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { mostHosts, type Task } from '../../workflows/contracts/task.ts';
import type { Composed } from '../compose/compose.ts';
import type { MainContainer } from '../compose/main-container.ts';
import type { TaskToml } from './task-toml.ts';

/** Returns the names of hosts that a sandbox knows and the limits of its processes, by `task.toml` and the compose file. */
export function hostsAndLimitsOf(
  { environment }: TaskToml,
  given: Pick<Composed, 'hosts'> & Pick<MainContainer, 'ulimits'>,
): Pick<Task, 'hosts' | 'ulimits'> {
  const hosts = [...given.hosts, ...environment.hosts];
  if (hosts.length > mostHosts) {
    const text = `extra_hosts: expected at most ${mostHosts} names of hosts, got ${hosts.length}`;
    throw new TemperFailure('UnsupportedTask', text);
  }
  const ulimits = [...new Map([...given.ulimits, ...environment.ulimits].map((one) => [one.name, one])).values()];
  return { ...(hosts.length > 0 && { hosts }), ...(ulimits.length > 0 && { ulimits }) };
}
