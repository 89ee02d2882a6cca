/** What the gateway bears and how long it waits, each with its reason. */
export const limits = {
  /** The largest conversation seen from a CLI agent is under 1 MB. */
  bodyBytes: 16 * 1024 * 1024,
  /** A session of a thousand turns has some ten thousand. */
  bodyValues: 100_000,
  /** Bodies of one session that are being read at once. */
  roomBytes: 32 * 1024 * 1024,
  /** What a client may send for nothing before its connection is cut. */
  drainedBytes: 64 * 1024 * 1024,
  /** An agent with sub-agents has a handful at once; more is an attack on the engine. */
  turnsAtOnce: 16,
  /** Flagged requests per session; an agent that goes on past its limits must not fill the disk. */
  flags: 100,
  /** A stream that says nothing for over 3 s looks dead to some clients; timers are late. */
  keepAliveMs: 2_500,
  retryFirstMs: 100,
  retryMaxMs: 2_000,
  /** A connected engine that samples nothing: a paused one may take minutes, a dead one is noticed at last. */
  engineSilenceMs: 600_000,
  /** How often the engine may break off one turn: weight updates do so, and so does a request that kills it. */
  interruptions: 50,
  /** How long the engine's context length is taken for known. */
  contextFreshMs: 60_000,
  retryAfterSec: 5,
  /** A gateway that is asked to end gives running turns this long; what is cut then is sampled again by the next one. */
  drainMs: 5_000,
  /** Replies of drained turns have to reach their clients. */
  flushMs: 500,
  /** How often a gateway says that it is there: what an agent's relay takes for present, too. */
  presenceMs: 5_000,
  sweepMs: 60_000,
  /** A session that was not used for so long leaves the memory. More than `requestMs`: a request that is being read finds its session. */
  restMs: 300_000,
  /** Sealed and abandoned sessions stay on disk this long. */
  retentionMs: 7 * 24 * 3_600_000,
  connections: 4_096,
  headersMs: 20_000,
  requestMs: 120_000,
  /** Above the idle time of clients' pools, so that the gateway is not the one who closes. */
  idleConnectionMs: 75_000,
} as const;
