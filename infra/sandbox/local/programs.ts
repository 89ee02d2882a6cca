import { accessSync, constants } from 'node:fs';
import { SandboxFailure } from '../failure.ts';

const directories = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin'];
/** Debian packages of the tools that are not in util-linux. */
const packages: Readonly<Record<string, string>> = {
  bwrap: 'bubblewrap',
  ip: 'iproute2',
  hostname: 'hostname',
  env: 'coreutils',
  du: 'coreutils',
};
const found = new Map<string, string | undefined>();

/** Finds a tool of the host in the system's own directories, since the caller's PATH may contain anything. */
function findProgram(name: string): string | undefined {
  if (!found.has(name)) found.set(name, directories.map((directory) => `${directory}/${name}`).find(isExecutable));
  return found.get(name);
}

export function requireProgram(name: string): string {
  const path = findProgram(name);
  if (path !== undefined) return path;
  const debian = packages[name] ?? 'util-linux';
  const text = `the program ${name} is not in ${directories.join(', ')}; install it (Debian: ${debian})`;
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
