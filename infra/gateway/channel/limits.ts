/** The limits of one channel. What runs in its sandbox is hostile, and must not slow another sandbox down. */
export const channelLimits = {
  /** Requests at once, as on a session's socket; see `sessionRequests` of the gateway. */
  requests: 64,
  /** New requests in a second: far more than agents make, whose turns take an engine's time. */
  requestsPerSec: 500,
  /** Bytes of a request's headers. Agents send some 2 KB. */
  headerBytes: 32 * 1024,
  /** MB that one HTTP/2 session may hold. */
  sessionMb: 8,
  /**
   * Bytes that carry no body: at most `overheadBytes` at once, and `overheadBytesPerSec` from then on. So frames that only cost
   * time are bounded, whatever their kind. More than a window, since a body counts once it is read.
   */
  overheadBytes: 2 * 1024 * 1024,
  overheadBytesPerSec: 256 * 1024,
  /** The time for which the gateway is kept at a turn whose channel broke. The relay asks for it again at once. */
  keptTurnMs: 30_000,
  /** The pauses before a stream is opened again. A sandbox that breaks its stream at once costs the host one command per `maxMs`. */
  reopen: { firstMs: 50, factor: 2, maxMs: 5_000 },
  /** A stream that lived this long was good: the pauses are short again. */
  goodMs: 10_000,
} as const;
