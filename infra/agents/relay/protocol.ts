/** What the relay and the gateways have agreed on. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';

/** With this header a gateway says its name in its replies, when it has the session itself: a client can go there at once. */
export const holderHeader = 'x-temper-gateway';
/** On a reply which says that another gateway, or this one in a moment, will answer: only then is it worth asking again. */
export const askAgainHeader = 'x-temper-ask-again';
/** How long a request is held while no gateway has it. */
export const heldMs = 60_000;

/** Headers of one connection, not of the message. */
const ofConnection = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'expect',
  'host',
]);

/** Those that are passed on. */
export const ofMessage = (headers: IncomingHttpHeaders): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !ofConnection.has(name)));
