import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where temper keeps what it fetched or built; outside of the checkout, so that every clone shares it. */
export function cacheDirectory(env) {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'temper');
}
