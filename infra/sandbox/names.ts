/** Names become directories, containers and labels: checked before anything is made of them. */
import { SandboxFailure } from './failure.ts';

const namePattern = /^[A-Za-z0-9][A-Za-z0-9_.-]{1,127}$/;
const keyPattern = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

export function requireName(name: string): string {
  if (namePattern.test(name)) return name;
  throw refusal('sandbox name', '2 to 128', name);
}

export function requireKey(key: string): string {
  if (keyPattern.test(key)) return key;
  throw refusal('process key', '1 to 64', key);
}

function refusal(what: string, length: string, got: string): SandboxFailure {
  const expected = `${length} letters, digits, "_", "." or "-", the first a letter or digit`;
  return new SandboxFailure('Internal', `expected as ${what} ${expected}, got ${JSON.stringify(got)}`);
}
