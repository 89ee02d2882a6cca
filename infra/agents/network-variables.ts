import type { Task } from '../../workflows/contracts/task.ts';
import { loopbackPorts } from '../sandbox/loopback-ports.ts';
import { egressVariable } from './relay/protocol.ts';

/** The loopback address in the sandbox at which the relay takes connections to the outside. */
const address = `127.0.0.1:${loopbackPorts.egress}`;
/** The sandbox itself, where the relay serves the gateway. */
const direct = 'localhost,127.0.0.1,::1';

/**
 * The variables of an agent with a network. curl, wget, git, pip, npm, cargo, go and apt take their proxy from them, some from the
 * names in capitals and some from the others.
 */
export const networkVariables: Readonly<Record<string, string>> = {
  [egressVariable]: address,
  http_proxy: `http://${address}`,
  https_proxy: `http://${address}`,
  no_proxy: direct,
  HTTP_PROXY: `http://${address}`,
  HTTPS_PROXY: `http://${address}`,
  NO_PROXY: direct,
};

/** The addresses of the sandbox itself. */
const nearAddress = /^(?:127\.|0\.0\.0\.0$|::1$|::$)/;

/** Returns these variables for a task: its services, and the hosts that it places in the sandbox, need no proxy either. */
export function networkVariablesFor({
  services = [],
  hosts = [],
}: Pick<Task, 'services' | 'hosts'>): Readonly<Record<string, string>> {
  const placed = hosts.filter(({ address }) => nearAddress.test(address));
  const near = [direct, ...[...services, ...placed].map(({ name }) => name)].join(',');
  return { ...networkVariables, no_proxy: near, NO_PROXY: near };
}
