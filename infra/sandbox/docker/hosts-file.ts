import type { SandboxSpec } from '../sandbox.ts';

/** The lines that Docker's daemon writes first, and that most systems have. */
const usual = [
  '127.0.0.1\tlocalhost',
  '::1\tlocalhost ip6-localhost ip6-loopback',
  'fe00::0\tip6-localnet',
  'ff00::0\tip6-mcastprefix',
  'ff02::1\tip6-allnodes',
  'ff02::2\tip6-allrouters',
];

/**
 * Whether the daemon sets up the network of a sandbox. Only a sandbox with services needs that, since they share its loopback
 * device and its hosts file. For any other the container runtime creates the loopback device. The daemon's work on a network takes
 * two fifths of the CPU time of a container's life, and Docker 20.10 can hang when many containers with one end at once.
 */
export const daemonMakesNetwork = ({ beside }: SandboxSpec): boolean => beside !== undefined;

/** The content of `/etc/hosts`, which the daemon writes only where it sets up the network. */
export function hostsFile({ hosts = [] }: SandboxSpec): string {
  return [...usual, ...hosts.map(({ name, address }) => `${address}\t${name}`), ''].join('\n');
}
