import { noGateway } from './relay/protocol.ts';
import { runProgram } from './runtime.ts';

/** The directory of the gateways' sockets inside a sandbox. */
export const gatewaySockets = '/gw';

/** The program that the relay starts, or the module of temper's own that it runs inside its process. */
export type RelayTarget = { readonly exec: readonly string[] } | { readonly module: string };

/**
 * Returns the command that serves the gateway at `baseUrl` (a loopback address) and runs an agent against it. While no gateway
 * is reachable, the relay keeps retrying the agent's requests.
 */
export function throughRelay(baseUrl: string, target: RelayTarget): readonly string[] {
  const { hostname, port } = new URL(baseUrl);
  const what = 'exec' in target ? ['exec', ...target.exec] : ['module', target.module];
  return runProgram('relay', [`${hostname}:${port}`, gatewaySockets, ...what]);
}

/** Returns the command that runs another one with a network but without a model. Its exit code is that command's. */
export const throughEgress = (argv: readonly string[]): readonly string[] =>
  runProgram('relay', [noGateway, noGateway, 'exec', ...argv]);

/** Returns the command that serves connections to the outside for other processes of its network, and ends after a time. */
export const servingEgress = (seconds: number): readonly string[] =>
  runProgram('relay', [noGateway, noGateway, 'serve', String(seconds)]);
