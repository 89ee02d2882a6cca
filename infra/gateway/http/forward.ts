import { Agent, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { endToEndHeaders } from '../../agents/relay/protocol.ts';
import { GatewayError } from '../gateway-error.ts';
import type { Peers } from '../peers.ts';

/** The header of a request that another gateway has forwarded. Such a request is not forwarded again. */
const forwardedHeader = 'x-temper-forwarded';

/**
 * Forwards an agent's request to the process that has its session, and streams the reply back. Rejects with a GatewayError
 * while the reply has not begun; a reply that is interrupted later is interrupted for the client too.
 */
export type Forward = (request: IncomingMessage, response: ServerResponse, holder: string | null) => Promise<void>;

export function createForward({ agentSocketOf }: Pick<Peers, 'agentSocketOf'>): {
  readonly forward: Forward;
  close(): void;
} {
  const agent = new Agent({ keepAlive: true });
  return {
    async forward(request, response, holder) {
      const socketPath = agentSocketOf(holder);
      if (request.headers[forwardedHeader] !== undefined) throw moving();
      const headers = { ...endToEndHeaders(request.headers), [forwardedHeader]: '1' };
      const upstream = send({ agent, socketPath, method: request.method, path: request.url, headers });
      const reply = new Promise<IncomingMessage>((resolve, reject) => {
        upstream.once('response', resolve);
        upstream.on('error', reject);
      });
      response.once('close', () => upstream.destroy());
      request.pipe(upstream);
      const answered = await reply.catch((cause: unknown) => {
        throw moving(cause);
      });
      response.writeHead(answered.statusCode ?? 502, endToEndHeaders(answered.headers));
      await pipeline(answered, response).catch(() => response.destroy());
    },
    close: () => agent.destroy(),
  };
}

function moving(cause?: unknown): GatewayError {
  const text = 'the session is moving from one gateway to another; send the request again';
  return new GatewayError('gateway-closing', text, { cause });
}
