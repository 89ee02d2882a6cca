import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { loopbackPorts } from '../loopback-ports.ts';
import type { Shell } from '../shell/shell.ts';

/** The state of a socket that listens, in the kernel's table. */
const listening = '0A';

/** Throws SetupFailed if a service listens on a port that the relay of the same sandbox needs. */
export async function requireFreePorts(shell: Pick<Shell, 'run'>, signal: AbortSignal): Promise<void> {
  const text = 'cat /proc/net/tcp /proc/net/tcp6 2>/dev/null';
  const { stdout } = await shell.run({ role: 'keeper', text, args: [] }, signal);
  const taken = new Set(listeningPorts(String(stdout)));
  const needed = [loopbackPorts.gatewayBesideServices, loopbackPorts.egress].find((port) => taken.has(port));
  if (needed === undefined) return;
  throw new TemperFailure(
    'SetupFailed',
    `a service of the task listens on port ${needed}, at which the sandbox that shares its network device reaches the gateway; give the service another port`,
  );
}

/** Reads the ports with a listener from the kernel's tables of TCP sockets. */
export const listeningPorts = (tables: string): readonly number[] =>
  tables.split('\n').flatMap((line) => {
    const [, local = '', , state] = line.trim().split(/\s+/);
    const [, port = ''] = /:([0-9A-F]{4})$/.exec(local) ?? [];
    return state === listening && port !== '' ? [Number.parseInt(port, 16)] : [];
  });
