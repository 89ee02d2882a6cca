import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The answer of a scripted route: a status with JSON or bytes, or a stream of `data:` events. */
export type Answer =
  | { readonly status: number; readonly json: unknown }
  | { readonly status: number; readonly bytes: Uint8Array; readonly type: string }
  | { readonly status: 302; readonly location: string }
  | { readonly events: readonly string[]; readonly cut?: boolean; readonly open?: boolean }
  | { readonly hang: true };

export interface SeenRequest {
  readonly route: string;
  readonly body: unknown;
  /** The request's `authorization` header. */
  readonly authorization: string | undefined;
  /** The request's `x-api-key` header. */
  readonly apiKey: string | undefined;
}

export interface ScriptedServer {
  readonly url: string;
  /** Every request in order, as `METHOD /path` with its parsed body. */
  readonly seen: readonly SeenRequest[];
  close(): Promise<void>;
}

/** Starts a server whose routes are functions of the request; a missing route answers as FastAPI does. */
export async function startScriptedServer(
  routes: Readonly<Record<string, (body: unknown) => Answer | Promise<Answer>>>,
): Promise<ScriptedServer> {
  const seen: SeenRequest[] = [];
  const server = createServer(async (request, response) => {
    const route = `${request.method} ${(request.url ?? '').split('?')[0]}`;
    const body = await bodyOf(request);
    const { authorization, 'x-api-key': apiKey } = request.headers;
    seen.push({ route, body, authorization, apiKey: apiKey?.toString() });
    send(response, (await routes[route]?.(body)) ?? { status: 404, json: { detail: 'Not Found' } });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const bytes = Buffer.concat(parts);
  return request.headers['content-type'] === 'application/json' ? JSON.parse(bytes.toString()) : bytes;
}

function send(response: ServerResponse, answer: Answer): void {
  if ('hang' in answer) return;
  if ('events' in answer) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of answer.events) response.write(`data: ${event}\n\n`);
    if (answer.cut === true) setImmediate(() => response.destroy());
    else if (answer.open !== true) response.end();
    return;
  }
  if ('location' in answer) {
    response.writeHead(answer.status, { location: answer.location }).end();
    return;
  }
  const json = 'json' in answer;
  response.writeHead(answer.status, { 'content-type': json ? 'application/json' : answer.type });
  response.end(json ? JSON.stringify(answer.json) : answer.bytes);
}
