import nodeModule from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The directory of everything that temper downloads or builds. It is outside the checkout, so that all clones share it. */
export function cacheDirectory(env) {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'temper');
}

/** Keeps the compiled code of the modules that this process loads from now on for the next processes, which need not compile it. */
export function keepCompiledCode(env) {
  nodeModule.enableCompileCache?.(compiledDirectory(env));
}

/** The directory that NODE_COMPILE_CACHE names in processes that are started by temper. */
export function compiledDirectory(env) {
  return join(cacheDirectory(env), 'compiled');
}
