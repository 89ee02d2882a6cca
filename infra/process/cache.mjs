import { homedir } from 'node:os';
import { join } from 'node:path';

/** The directory of everything that temper downloads or builds. It is outside the checkout, so that all clones share it. */
export function cacheDirectory(env) {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'temper');
}
