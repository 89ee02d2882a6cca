import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';

// The constants that the relay and the gateways share.

/** Response header with the name of the gateway that serves the session, so that a client can connect to it directly. */
export const gatewayNameHeader = 'x-temper-gateway';
/** Response header that asks the relay to retry: another gateway, or the same one a moment later, will answer. */
export const retryHeader = 'x-temper-ask-again';
/** Request header by which the relay names a request of its agent. Each time that it sends the request again, the name is the same. */
export const requestHeader = 'x-temper-request';
/** Request header with the names of the last requests whose replies the agent has not got whole, with commas between them. */
export const unreadHeader = 'x-temper-unread';
export const mostUnread = 16;
/** Response header that asks the relay to end the agent, which has handed in its work. */
export const endHeader = 'x-temper-end';
/** The path at which a gateway serves host tools. */
export const hostToolsPath = '/mcp';
/** Limit in ms on how long the relay retries a request while no gateway answers it. */
export const relayRetryMs = 60_000;

/**
 * Environment variable with the limit in ms on how long the relay retries a request over a stream. Longer, because a stream is
 * away for as long as its host is: until a worker has restarted, or another host has adopted the rollout. Many clients give up
 * after 300 s without an answer, and send the request again.
 */
export const holdVariable = 'TEMPER_HOLD_MS';
export const defaultHoldMs = 600_000;
/** Environment variable that names the kind of channel to the relay; absent for mounted sockets. */
export const channelVariable = 'TEMPER_CHANNEL';
/** Returns the unix socket on which the relay accepts the bridge, in the home of the account that runs both. */
export const channelSocketIn = (home: string): string => `${home}/.temper-channel.sock`;
/** The authority of model calls on a channel. What else a channel carries has another one. */
export const modelService = 'gateway';
/** The authority of connections to the outside on a channel. */
export const egressService = 'egress';
/** The directory in a sandbox that holds the socket for connections to the outside, where sockets are mounted. */
export const egressDirectory = '/temper-network';
export const egressSocket = `${egressDirectory}/egress`;
/** The argument in place of an address and a directory by which the relay serves no gateway. */
export const noGateway = '-';
/** Environment variable with the loopback address on which the relay accepts connections to the outside; absent without a network. */
export const egressVariable = 'TEMPER_EGRESS';
/** Trailer of a reply over a channel that has reached its end. Without it the reply was interrupted. */
export const completeTrailer = 'x-temper-complete';
/** Bytes in flight on a channel in one direction: enough for most bodies, so that they need no round trip of their own. */
export const channelWindow = 1024 * 1024;

/** Headers that concern one connection, not the message. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'http2-settings',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'expect',
  'host',
]);

/** The headers that are passed on. */
export const endToEndHeaders = (headers: IncomingHttpHeaders): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name)));
