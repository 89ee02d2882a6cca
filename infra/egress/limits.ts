/** The limits of one sandbox's proxy. What runs in the sandbox is hostile, and shares the host's network with others. */
export const egressLimits = {
  /** Connections at once. Package managers use some 16. */
  connections: 32,
  /** Requests and tunnels in all. */
  requests: 20_000,
  /** Bytes in all, from the outside and to it. */
  bytesIn: 8 * 1024 ** 3,
  bytesOut: 1024 ** 3,
  /** Bytes of a request's headers. */
  headerBytes: 16 * 1024,
  /** Bytes of the beginning of a TLS connection, and the time for it. */
  helloBytes: 16 * 1024,
  helloMs: 10_000,
  /** Addresses of one host that are tried, and the time for each. */
  addresses: 4,
  connectMs: 10_000,
  /** The time in which neither side sends anything, and the time of one connection in all. */
  idleMs: 300_000,
  lifetimeMs: 3_600_000,
  /** Rows of the report: one for each host, port and decision. What is beyond them is counted in one more. */
  rows: 200,
} as const;

/** The limits with numbers of any size, so that a test can reach them. */
export type EgressLimits = { readonly [Name in keyof typeof egressLimits]: number };
