import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';

/** The stack's key. Frequent callers pass a KeyObject, since raw bytes are prepared again at each use. */
type StackKey = Uint8Array | KeyObject;

/**
 * Derives the secret of one session from the stack's key. Host worker and gateway each derive it, so that it never travels
 * through workflow history. It contains the session's id, so that it opens no other session.
 */
export function secretOf(stackKey: Uint8Array, session: string): string {
  return `${session}~${macOf(stackKey, session).toString('base64url')}`;
}

/** Returns the session that a secret opens; null for a forged secret. The comparison takes constant time. */
export function sessionOfSecret(stackKey: StackKey, secret: string): string | null {
  const end = secret.lastIndexOf('~');
  if (end <= 0) return null;
  const session = secret.slice(0, end);
  const expected = macOf(stackKey, session);
  const given = Buffer.from(secret.slice(end + 1), 'base64url');
  return given.length === expected.length && timingSafeEqual(given, expected) ? session : null;
}

function macOf(stackKey: StackKey, session: string): Buffer {
  return createHmac('sha256', stackKey).update('gateway session ').update(session).digest();
}
