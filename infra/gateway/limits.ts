/** The gateway's limits on sizes, counts and times, each with its reason. */
export const limits = {
  /** Bytes of one body. The largest conversation seen from a CLI agent is under 1 MB. */
  bodyBytes: 16 * 1024 * 1024,
  /** JSON values in one body. A session of a thousand turns has some ten thousand. */
  bodyValues: 100_000,
  /** Bytes of all bodies of one session that are being read at the same time. */
  sessionBodyBytes: 32 * 1024 * 1024,
  /** Bytes of the largest body that is kept, so that the next one is parsed from where it differs. */
  keptBodyBytes: 2 * 1024 * 1024,
  /** Bytes of a refused body that are read and discarded before the connection is cut. */
  discardedBytes: 64 * 1024 * 1024,
  /** Characters of a conversation that is rendered, which takes some 0.2 s, whatever the context length. */
  quickCharacters: 256 * 1024,
  /** More characters than a token of any prompt has on average: code has 3 to 4, and long runs of blanks count as one token. */
  charactersPerToken: 16,
  /** Running turns of one session. An agent with sub-agents has a handful; more is an attack on the engine. */
  turnsAtOnce: 16,
  /** Requests of one session that an agent may give up before they count towards its limits, as those of sub-agents that it ends. */
  freeCuts: 100,
  /** Recorded failed requests per session; an agent that ignores its limits must not fill the disk. */
  requestFailures: 100,
  /** Failed requests of one session that are logged in a minute, however many an agent makes. */
  loggedFailures: 20,
  /** Calls of host tools in one session, and characters of their arguments and results: an agent must not fill the disk. */
  hostCalls: 500,
  hostCallCharacters: 64_000,
  /** Seconds that a host tool has by default. */
  hostCallSec: 30,
  /** Pieces of a reply that are written before the client has to read, each with some hundred bytes around it. */
  deltasAtOnce: 128,
  /** A stream that sends nothing for over 3 s looks dead to some clients, and timers fire late. */
  keepAliveMs: 2_500,
  /** The first and the longest pause before an engine that is away is asked again. */
  retryFirstMs: 100,
  retryMaxMs: 2_000,
  /** A connected engine that samples nothing: a paused one may take minutes, and a dead one must be noticed eventually. */
  engineSilenceMs: 600_000,
  /** Times that the engine may fail during one turn: weight updates abort turns, and so does a request that crashes the engine. */
  engineAborts: 50,
  /** The time for which the engine's context length counts as current. */
  contextFreshMs: 60_000,
  /** Seconds after which a client may send a refused request again, as the header `retry-after` says. */
  retryAfterSec: 5,
  /** A closing gateway gives running turns this long; the next gateway samples the turns that are cut then again. */
  drainMs: 5_000,
  /** The time in which replies of drained turns have to reach their clients. */
  flushMs: 500,
  /** The interval at which a gateway confirms its presence, by which relays judge whether it is there. */
  presenceMs: 5_000,
  /** The interval at which unused sessions are unloaded and old files are removed. */
  cleanUpMs: 60_000,
  /** An unused session is unloaded after this time. More than `requestMs`, so that a request being read finds its session. */
  idleMs: 300_000,
  /** Sealed and abandoned sessions stay on disk this long. */
  retentionMs: 7 * 24 * 3_600_000,
  /** Connections of one socket that serves every session. */
  connections: 4_096,
  /** Connections that wait to be accepted on such a socket. The kernel lowers it to its own limit, 4,096 by default. */
  backlog: 4_096,
  /** Connections of one session: a relay needs one for each running turn. */
  sessionConnections: 64,
  /** New connections of one session in a second, for clients that open one for each request. */
  sessionConnectsPerSec: 200,
  /** Connections of one session that wait to be accepted: as many as it may have. */
  sessionBacklog: 64,
  /** The time for which a session's socket is closed once its limits are exceeded. */
  sessionRestMs: 1_000,
  /** Requests of one session that are being answered; pipelining clients send several on one connection. */
  sessionRequests: 64,
  /** The interval at which gateways learn of sessions that another one opened or sealed. Relays retry for far longer. */
  socketsMs: 2_000,
  /** The time for a request's headers, and for the whole request: a client that sends nothing must not keep a connection. */
  headersMs: 20_000,
  requestMs: 120_000,
  /** Longer than the idle time of clients' pools, so that clients and not the gateway close idle connections. */
  idleConnectionMs: 75_000,
} as const;
