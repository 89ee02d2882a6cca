import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';

// The constants that the relay and the gateways share.

/** Response header with the name of the gateway that serves the session, so that a client can connect to it directly. */
export const gatewayNameHeader = 'x-temper-gateway';
/** Response header that asks the relay to retry: another gateway, or the same one a moment later, will answer. */
export const retryHeader = 'x-temper-ask-again';
/** Limit in ms on how long the relay retries a request while no gateway answers it. */
export const relayRetryMs = 60_000;

/** Headers that concern one connection, not the message. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
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
