import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';

/** A request of the agent, as it is sent to a gateway, maybe several times. */
export interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: AsyncIterable<Buffer>;
  /** Whether the body that was read is the whole one; valid once it was read to its end. */
  isComplete(): boolean;
}

export interface Sending {
  /** Rejects if no reply begins. */
  readonly reply: Promise<Reply>;
  /** Ends the exchange, because its client has left. */
  abandon(): void;
}

/** A way from the relay to the gateways. */
export interface Route {
  /** The limit in ms on how long a request is sent again while none gets through. */
  readonly retryMs: number;
  /** Sends a call once. */
  send(call: Call): Sending;
  /** Opens a connection to the host's proxy for the outside. Rejects while the host does not take it. */
  openEgress(): Promise<Duplex>;
  /** Notes that the last exchange failed. */
  failed(): void;
  /** Waits before the next try, at most `ms`. */
  pause(ms: number): Promise<void>;
}
