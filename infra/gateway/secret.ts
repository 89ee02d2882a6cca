import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';

/** The stack's key. Frequent callers pass a KeyObject, since raw bytes are prepared again at each use. */
type StackKey = Uint8Array | KeyObject;

/** The number of sessions whose codes are kept: more than a gateway serves at once. */
const keptCodes = 4_096;

/**
 * Derives the secret of one session from the stack's key. Host worker and gateway each derive it, so that it never travels
 * through workflow history. It contains the session's id, so that it opens no other session.
 */
export function secretOf(stackKey: Uint8Array, session: string): string {
  return `${session}~${macOf(stackKey, session).toString('base64url')}`;
}

/** Derives the secrets of one session from all keys: the one that agents are started with, and those of agents that run already. */
export function secretsOf(
  [first, ...others]: readonly [Uint8Array, ...Uint8Array[]],
  session: string,
): readonly [string, ...string[]] {
  return [secretOf(first, session), ...others.map((key) => secretOf(key, session))];
}

/**
 * Creates the function that returns the session that a secret opens; null for a forged secret. A secret is derived from any of
 * the keys. The comparison takes constant time. The codes of recent sessions are kept, since each of their requests presents
 * the secret again.
 */
export function createSecretCheck(keys: readonly Uint8Array[]): (secret: string) => string | null {
  const stackKeys = keys.map((key) => createSecretKey(key));
  const codes = new LRUCache<string, Buffer>({ max: keptCodes });
  return (secret) => {
    const end = secret.lastIndexOf('~');
    if (end <= 0) return null;
    const session = secret.slice(0, end);
    const given = Buffer.from(secret.slice(end + 1), 'base64url');
    const isGiven = (code: Buffer): boolean => code.length === given.length && timingSafeEqual(code, given);
    const known = codes.get(session);
    if (known !== undefined && isGiven(known)) return session;
    const code = stackKeys.map((key) => macOf(key, session)).find(isGiven);
    if (code === undefined) return null;
    codes.set(session, code);
    return session;
  };
}

function macOf(stackKey: StackKey, session: string): Buffer {
  return createHmac('sha256', stackKey).update('gateway session ').update(session).digest();
}
