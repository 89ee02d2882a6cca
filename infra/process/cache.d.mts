/** Where temper keeps what it fetched or built; outside of the checkout, so that every clone shares it. */
export function cacheDirectory(env: Readonly<Record<string, string | undefined>>): string;
