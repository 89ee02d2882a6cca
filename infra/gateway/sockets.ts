import { join } from 'node:path';
import { crc32 } from 'node:zlib';

/** Where the gateway processes of a stack listen, each on sockets of its own name. */
export interface GatewaySockets {
  /** Holds the agents' sockets and nothing else; mounted into sandboxes. */
  readonly agents: string;
  /** Only this user may enter it. */
  readonly control: string;
}

export type GatewayName = 'gateway' | `gateway-${number}`;

/** `gateway`, `gateway-1`, ... */
export const gatewayNames = (count: number): readonly GatewayName[] =>
  Array.from({ length: count }, (_, index) => (index === 0 ? 'gateway' : (`gateway-${index}` as const)));

/** Control sockets of all gateway processes of a stack, in order. */
export const controlSockets = (sockets: Pick<GatewaySockets, 'control'>, processes: number): readonly string[] =>
  gatewayNames(processes).map((name) => socketOf(sockets.control, name));

export const socketOf = (directory: string, name: string): string => join(directory, `${name}.sock`);

/** The processes in the order in which they are asked for a session: the first opens it, any of them can go on with it. */
export function orderFor<Name>(session: string, names: readonly Name[]): readonly Name[] {
  const first = crc32(session) % names.length;
  return [...names.slice(first), ...names.slice(0, first)];
}
