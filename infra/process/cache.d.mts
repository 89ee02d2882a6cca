/** The directory of everything that temper downloads or builds. It is outside the checkout, so that all clones share it. */
export function cacheDirectory(env: Readonly<Record<string, string | undefined>>): string;

/** Keeps the compiled code of the modules that this process loads from now on for the next processes, which need not compile it. */
export function keepCompiledCode(env: Readonly<Record<string, string | undefined>>): void;

/** The directory that NODE_COMPILE_CACHE names in processes that are started by temper. */
export function compiledDirectory(env: Readonly<Record<string, string | undefined>>): string;
