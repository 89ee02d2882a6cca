import { SandboxFailure } from './failure.ts';

const namePattern = /^[A-Za-z0-9][A-Za-z0-9_.-]{1,127}$/;
const keyPattern = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/** Returns the sandbox name if it may be the name of a directory, a container and a label. Throws otherwise. */
export function requireName(name: string): string {
  if (namePattern.test(name)) return name;
  throw invalid('sandbox name', '2 to 128', name);
}

/** Returns the process key if it may be the name of a directory. Throws otherwise. */
export function requireKey(key: string): string {
  if (keyPattern.test(key)) return key;
  throw invalid('process key', '1 to 64', key);
}

function invalid(what: string, length: string, got: string): SandboxFailure {
  const rule = `expected ${length} letters, digits, "_", "." or "-", the first a letter or digit`;
  return new SandboxFailure('Internal', `invalid ${what} ${JSON.stringify(got)}: ${rule}`);
}
