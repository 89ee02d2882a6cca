import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Machine } from './machine.ts';

/** The part of a sandbox that the proxy needs. */
interface Proxied {
  readonly machine: Machine;
  readonly token: string;
  readonly state: 'running' | 'paused';
}

/** Passes a request on to the envd of a sandbox, whose own secret it must have. */
export async function proxy(
  box: Proxied | undefined,
  request: IncomingMessage,
  response: ServerResponse,
  proxied: Set<ServerResponse>,
): Promise<void> {
  const send = (status: number, body: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  if (box === undefined || box.state === 'paused') {
    const sandboxId = request.headers['e2b-sandbox-id'];
    return send(502, { sandboxId, message: 'The sandbox was not found', code: 502 });
  }
  if (request.headers['x-access-token'] !== box.token) return send(401, { code: 401, message: 'unauthorized' });
  if (request.url === '/metrics') return send(200, { disk_used: 2 ** 30 + (await box.machine.usedBytes()) });
  const { method, url: path, headers } = request;
  const inner = httpRequest({ socketPath: box.machine.socket, method, path, headers }, (answered) => {
    response.writeHead(answered.statusCode ?? 500, answered.headers);
    answered.pipe(response);
    answered.on('close', () => answered.complete || response.destroy());
  });
  inner.on('error', () => response.destroy());
  proxied.add(response);
  response.on('close', () => {
    proxied.delete(response);
    inner.destroy();
  });
  request.pipe(inner);
}
