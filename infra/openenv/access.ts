import { createHash, timingSafeEqual } from 'node:crypto';

/** The secrets that a server asks for; null for none. */
export interface AccessKeys {
  /** The token of clients. */
  readonly client: string | null;
  /** The key of the gateways. */
  readonly model: string | null;
}

/** The path at which the server answers that it runs. It reveals nothing else and needs no key. */
const openPath = '/health';
const modelPrefix = '/model/';

/**
 * Returns the reason why a request is refused, or null. A request carries the secret of its path as a bearer token, or as the
 * password of an address such as wss://client:TOKEN@host, because the client of OpenEnv sets no headers.
 */
export function refusalOf(
  { client, model }: AccessKeys,
  { path, authorization }: { readonly path: string; readonly authorization: string | undefined },
): string | null {
  const isModel = path.startsWith(modelPrefix);
  const expected = isModel ? model : client;
  if (path === openPath || expected === null) return null;
  const sent = secretIn(authorization ?? '');
  if (sent !== null && isSame(sent, expected)) return null;
  const what = isModel ? 'the key of the upstream model' : 'the token of the environment';
  return `expected ${what}, got ${sent === null ? 'none' : 'another'}`;
}

function secretIn(header: string): string | null {
  const [, scheme = '', value = ''] = /^(\S+) +(\S+)$/.exec(header) ?? [];
  if (scheme.toLowerCase() === 'bearer') return value;
  if (scheme.toLowerCase() !== 'basic') return null;
  const text = Buffer.from(value, 'base64').toString();
  return text.includes(':') ? text.slice(text.indexOf(':') + 1) : null;
}

/** Compares two secrets in a time that says nothing about them. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
