import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { isOfHost } from './host-variables.ts';
import type { TaskToml } from './task-toml.ts';

/** What a `task.toml` may ask for and no sandbox here gives: the first of it, by name. What is silently left out would be graded. */
export function refuseUnsupported({ environment, agent, verifier, solution, steps }: TaskToml): void {
  const refuse = (field: string, expected: string, got: string): never => {
    throw new TemperFailure('UnsupportedTask', `task.toml: ${field}: expected ${expected}, got ${got}`);
  };
  if (steps.length > 0) refuse('steps', 'tasks of one step', `${steps.length} steps`);
  if (environment.gpus > 0) refuse('environment.gpus', '0', String(environment.gpus));
  if (environment.tpu !== undefined) refuse('environment.tpu', 'none', 'one');
  if (environment.os.toLowerCase() !== 'linux') refuse('environment.os', 'linux', environment.os);
  if (environment.mcp_servers.length > 0) refuse('environment.mcp_servers', 'none', 'some');
  if (environment.skills_dir !== undefined) refuse('environment.skills_dir', 'none', environment.skills_dir);
  if (environment.healthcheck !== undefined) {
    refuse('environment.healthcheck', 'an environment that is ready when it starts', 'a check to wait for');
  }
  // A network is Harbor's default, of which most tasks make no use: only one that was asked for by name is missed.
  const phases = { environment, agent, verifier };
  for (const [table, { network_mode: mode, allowed_hosts: hosts = [] }] of Object.entries(phases)) {
    const isDefault = mode === undefined || mode === 'no-network' || (mode === 'public' && table === 'environment');
    if (isDefault && hosts.length === 0) continue;
    refuse(`${table}.network_mode`, 'no-network: no sandbox here has any', [mode, ...hosts].join(' '));
  }
  if ((verifier.environment_mode ?? 'shared') !== 'shared' || verifier.environment !== undefined) {
    refuse('verifier.environment_mode', "tests in an environment like the agent's", 'one of their own');
  }
  if (verifier.collect.length > 0) refuse('verifier.collect', 'none', 'some');
  for (const [table, { env }] of Object.entries({ environment, verifier, solution })) {
    const [name, value] = Object.entries(env).find(([, value]) => isOfHost(value)) ?? [];
    if (value !== undefined) refuse(`${table}.env.${name}`, 'a value, since no host gives its own', value);
  }
}
