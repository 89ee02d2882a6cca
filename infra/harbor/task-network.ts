import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { describeIssue } from '../../workflows/contracts/input.ts';
import { type NetworkPolicy, networkPolicy } from '../../workflows/contracts/network.ts';

/** The network fields of a table of a task.toml. */
interface NetworkFields {
  readonly network_mode?: 'no-network' | 'public' | 'allowlist' | undefined;
  readonly allowed_hosts?: readonly string[] | undefined;
  readonly allowed_ports?: readonly number[] | undefined;
}

/**
 * Returns the network of a task's agent; undefined if it has none. The agent's own table comes before the environment's, where
 * `public` is Harbor's default, which most tasks do not use: it asks for nothing. Throws TemperFailure MalformedTask.
 */
export function agentNetwork(
  tables: Readonly<Record<'agent' | 'environment', NetworkFields>>,
): NetworkPolicy | undefined {
  const table =
    tables.agent.network_mode === undefined && tables.agent.allowed_hosts === undefined ? 'environment' : 'agent';
  const { network_mode: mode = 'no-network', allowed_hosts: hosts = [], allowed_ports: ports } = tables[table];
  if (hosts.length === 0 && (mode === 'no-network' || (mode === 'public' && table === 'environment'))) return undefined;
  const asked = { mode: mode === 'no-network' ? 'none' : mode, hosts, ports };
  const parsed = networkPolicy.safeParse(asked);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => describeIssue(issue, asked)).join('; ');
  throw new TemperFailure('MalformedTask', `task.toml: ${table}: network: ${problems}`);
}
