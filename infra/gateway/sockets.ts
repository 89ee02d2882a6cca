import { createHash } from 'node:crypto';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

/** The directories in which the gateway processes of a stack listen, each process on sockets named after it. */
export interface GatewaySockets {
  /** Holds a directory of sockets for each open session, which is mounted into the session's sandbox. */
  readonly sessions: string;
  /** Holds sockets that serve every session: other gateways forward requests there. */
  readonly agents: string;
  /** Holds the control sockets; only the stack's user may enter it. */
  readonly control: string;
}

export type GatewayName = 'gateway' | `gateway-${number}`;

/** The names of a stack's gateway processes: `gateway`, `gateway-1`, … */
export const gatewayNames = (count: number): readonly GatewayName[] =>
  Array.from({ length: count }, (_, index) => (index === 0 ? 'gateway' : (`gateway-${index}` as const)));

/** The control sockets of all gateway processes of a stack, in order. */
export const controlSockets = (sockets: Pick<GatewaySockets, 'control'>, processes: number): readonly string[] =>
  gatewayNames(processes).map((name) => socketOf(sockets.control, name));

export const socketOf = (directory: string, name: string): string => join(directory, `${name}.sock`);

/** Returns the name of a session's directory: short, since the path of a socket has at most 107 bytes. */
export const directoryNameOf = (session: string): string =>
  createHash('sha256').update(session).digest('hex').slice(0, 16);

/** Returns the directory to mount for a session: its own, or the shared one if its sandbox is made before the session is open. */
export async function directoryToMount(
  { sessions, agents }: Pick<GatewaySockets, 'sessions' | 'agents'>,
  session: string,
): Promise<string> {
  const own = join(sessions, directoryNameOf(session));
  return access(own).then(
    () => own,
    () => agents,
  );
}

/** The processes in the order in which a session's requests try them: the first opens it, and any other can take it over. */
export function orderFor<Name>(session: string, names: readonly Name[]): readonly Name[] {
  const first = crc32(session) % names.length;
  return [...names.slice(first), ...names.slice(0, first)];
}
