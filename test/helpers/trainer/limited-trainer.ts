import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeRequest, protobufType } from '../../../infra/kits/tinker-wire/index.ts';

/** The way in which the failure of a request is answered: as SkyRL's for an error that it knows, for another one, or in a 200. */
export type FailureForm = 'error' | 'unknown-error' | 'error-in-200';

export interface LimitedTrainer {
  readonly url: string;
  /** The number of tokens, padding included, that one forward_backward has memory for. */
  memoryTokens: number;
  form: FailureForm;
  /** Replaces the metrics of each optimizer step by these, in the words of the server's JSON. Null: the server's own. */
  metrics: string | null;
  /** The sizes of the forward_backward requests that were given, in datums, without those that compute logprobs alone. */
  readonly sizes: number[];
  /** The number of times that a failure was read. */
  failuresRead: number;
  close(): Promise<void>;
}

interface Failed {
  readonly requestId: string;
  readonly body: string;
}

/**
 * Starts a Tinker server before the embedded policy server, which does the work. Its memory is limited, and it keeps the failure of
 * a request under the request's model and sequence number, as SkyRL does: the same request fails again although the memory
 * would suffice by now, and another one of that number is refused.
 */
export async function startLimitedTrainer(upstream: string, memoryTokens: number): Promise<LimitedTrainer> {
  const failed = new Map<string, Failed>();
  const stepping = new Set<string>();
  const limited = { memoryTokens, form: 'error' as FailureForm, metrics: null as string | null, failuresRead: 0 };
  const sizes: number[] = [];

  const server = createServer(async (request, response) => {
    const bytes = await bytesOf(request);
    const path = request.url ?? '';
    if (path === '/api/v1/retrieve_future' && answersFailure(requestIdIn(bytes), response)) return;
    if (path === '/api/v1/forward_backward' && request.headers['content-type'] === protobufType) {
      const requestId = refuses(bytes);
      if (requestId === 'reused') return json(response, 409, { detail: 'Training request sequence number was reused' });
      if (requestId !== null) return json(response, 200, { request_id: requestId, status: 'pending' });
    }
    const reply = await fetch(upstream + path, {
      method: request.method ?? 'GET',
      headers: forwarded(request),
      redirect: 'manual',
      ...(bytes.length > 0 && { body: Buffer.from(bytes) }),
    }).catch(() => null);
    // As a server that is away.
    if (reply === null) return void response.destroy();
    const body = Buffer.from(await reply.arrayBuffer());
    if (path === '/api/v1/optim_step' && reply.status === 200) stepping.add(requestIdIn(body));
    const isStep = path === '/api/v1/retrieve_future' && stepping.has(requestIdIn(bytes)) && reply.status === 200;
    const headers = { 'content-type': reply.headers.get('content-type') ?? 'application/json' };
    response.writeHead(reply.status, headers).end(isStep ? stepBody(body) : body);
  });

  function stepBody(body: Buffer): Buffer | string {
    return limited.metrics === null ? body : `{"type":"optim_step","metrics":${limited.metrics}}`;
  }

  /** Returns the id of the failed request; null if there is memory for it; 'reused' for another one of the same number. */
  function refuses(bytes: Buffer): string | null {
    const { modelId, sequence, data, forwardOnly } = decodeRequest(bytes);
    const key = `${modelId} ${sequence}`;
    const known = failed.get(key);
    const body = bytes.toString('base64');
    if (known !== undefined) return known.body === body ? known.requestId : 'reused';
    if (!forwardOnly) sizes.push(data.length);
    const longest = Math.max(...data.map(({ tokens }) => tokens.length));
    if (longest * data.length <= limited.memoryTokens) return null;
    const made = { requestId: randomUUID(), body };
    failed.set(key, made);
    return made.requestId;
  }

  function answersFailure(requestId: string, response: ServerResponse): boolean {
    if (![...failed.values()].some((one) => one.requestId === requestId)) return false;
    limited.failuresRead += 1;
    const message = 'CUDA out of memory. Tried to allocate 2.00 GiB';
    if (limited.form === 'error') json(response, 400, { detail: message });
    else if (limited.form === 'error-in-200') json(response, 200, { error: message, category: 'server' });
    else response.writeHead(500, { 'content-type': 'text/plain' }).end('Internal Server Error');
    return true;
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(limited, {
    url: `http://127.0.0.1:${port}`,
    sizes,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

function forwarded({ headers }: IncomingMessage): Record<string, string> {
  const { 'content-type': type, accept, 'x-api-key': key } = headers;
  return {
    ...(type !== undefined && { 'content-type': type }),
    ...(accept !== undefined && { accept }),
    ...(key !== undefined && { 'x-api-key': String(key) }),
  };
}

/** Returns the request's id in a JSON body, or an empty text. */
function requestIdIn(bytes: Buffer): string {
  const [, id = ''] = /"request_id":\s*"([^"]+)"/.exec(bytes.toString('latin1')) ?? [];
  return id;
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
