/** The directory of everything that temper downloads or builds. It is outside the checkout, so that all clones share it. */
export function cacheDirectory(env: Readonly<Record<string, string | undefined>>): string;
