import { createHash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';

/** The keys that a policy server asks for: the one of an engine, and that of a trainer. */
export interface PolicyKeys {
  readonly engine: string;
  readonly trainer: string;
}

/** The start of the trainer's paths; all others are the engine's. */
const trainerPath = '/api/v1/';
/** The path at which `temper up` asks whether the server is ready. */
const openPath = '/health';

/** Refuses requests without the key of their routes, as a bearer token or in `x-api-key`. */
export function requireKeys(keys: PolicyKeys): MiddlewareHandler {
  return async (c, next) => {
    const { path } = c.req;
    if (path === openPath) return next();
    const part = path.startsWith(trainerPath) ? 'trainer' : 'engine';
    const sent = c.req.header('x-api-key') ?? c.req.header('authorization')?.replace(/^Bearer +/i, '');
    if (sent !== undefined && isSame(sent, keys[part])) return next();
    const message = `expected the key of the ${part}, got ${sent === undefined ? 'none' : 'another'}`;
    return c.json({ error: { message, type: 'unauthorized', code: 401 } }, 401);
  };
}

/** Compares two secrets in a time that says nothing about them. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
