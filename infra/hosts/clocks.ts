/** The difference between two clocks from which it is named, and from which a host is refused. Retention compares times. */
export const namedSkewMs = 2 * 60_000;
export const mostSkewMs = 5 * 60_000;
