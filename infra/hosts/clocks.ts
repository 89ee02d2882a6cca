/** The difference between a host's clock and another one from which on temper names it to the operator. */
export const namedSkewMs = 2 * 60_000;
/** The difference from which on a host is refused, because retention compares its times with those of the store. */
export const mostSkewMs = 5 * 60_000;
