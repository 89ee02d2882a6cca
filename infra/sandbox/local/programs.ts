/** Where the host's tools are. Looked up in the system's own directories only: the caller's PATH may hold anything. */
import { accessSync, constants } from 'node:fs';
import { SandboxFailure } from '../failure.ts';

const directories = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin'];
/** Debian's names of the packages that are not util-linux. */
const packages: Readonly<Record<string, string>> = {
  bwrap: 'bubblewrap',
  ip: 'iproute2',
  hostname: 'hostname',
  env: 'coreutils',
  du: 'coreutils',
};
const found = new Map<string, string | undefined>();

export function findProgram(name: string): string | undefined {
  if (!found.has(name)) found.set(name, directories.map((directory) => `${directory}/${name}`).find(isExecutable));
  return found.get(name);
}

export function requireProgram(name: string): string {
  const path = findProgram(name);
  if (path !== undefined) return path;
  const debian = packages[name] ?? 'util-linux';
  const text = `expected the program ${name} in ${directories.join(', ')}, got none; install it (Debian: ${debian})`;
  throw new SandboxFailure('Internal', text);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
