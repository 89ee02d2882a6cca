import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createBuilds } from './builds.ts';
import { HttpError, jsonOf, type Route } from './http.ts';
import { type Machine, startMachine, type Template } from './machine.ts';
import { proxy } from './proxy.ts';

/** A sandbox as the stand-in keeps it. */
interface Box {
  readonly sandboxID: string;
  readonly templateID: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly startedAt: number;
  readonly token: string;
  readonly machine: Machine;
  endAt: number;
  state: 'running' | 'paused';
  timer: NodeJS.Timeout | undefined;
}

/** A fault of one creation. `lost`: the sandbox is made, and the answer is a 504. */
export type CreateFault = 'lost' | 'busy' | 'quota' | { readonly retryAfterSec: number | null };

export interface E2bServer {
  readonly url: string;
  readonly key: string;
  /** Faults of the creations to come, in order. */
  readonly createFaults: CreateFault[];
  /** The requests so far, as `POST /v2/sandboxes`. */
  readonly requests: string[];
  /** The bodies of the creations so far. */
  readonly creations: unknown[];
  /** Makes lists show what they show now, until the returned function is called. */
  freezeLists(): () => void;
  /** Moves the server's clock ahead, until the returned function is called. */
  skewClock(ms: number): () => void;
  /** Ends a sandbox as its provider might, without notice. */
  vanish(name: string): Promise<void>;
  /** Cuts all connections to the sandboxes. */
  cutStreams(): void;
  /** The ids of the sandboxes of a name, or of all; the container of each is `e2b-ID`. */
  ids(name?: string): readonly string[];
  leaseEndMs(name: string): number;
  /** Pauses a sandbox, as its owner may by hand. */
  pause(name: string): Promise<void>;
  /** Makes a second sandbox with the metadata of the first of this name, as a racing creator does. */
  duplicate(name: string): Promise<string>;
  close(): Promise<void>;
}

export interface E2bServerOptions {
  readonly templates: Readonly<Record<string, Template>>;
  /** The account's longest lease. */
  readonly maxHours?: number;
}

/** The metadata key by which the stand-in replaces a template's image, as OpenKruise's server does. */
export const imageKey = 'e2b.agents.kruise.io/image';

const recentEnvd = '0.6.4';

/**
 * Starts a typed sibling of an E2B server: its REST API and, on the same address, its proxy to the sandboxes' envd. Its sandboxes
 * are containers with real users, processes, signals and files; see `machine.ts`. It causes the faults that E2B's users report.
 */
export async function startE2bServer({ templates: known, maxHours = 24 }: E2bServerOptions): Promise<E2bServer> {
  const key = `e2b_${randomBytes(20).toString('hex')}`;
  const templates: Record<string, Template> = { ...known };
  const builds = createBuilds(templates);
  const boxes = new Map<string, Box>();
  const createFaults: CreateFault[] = [];
  const requests: string[] = [];
  const creations: unknown[] = [];
  const proxied = new Set<ServerResponse>();
  let frozen: readonly Box[] | undefined;
  let skewMs = 0;

  const end = async (box: Box): Promise<void> => {
    clearTimeout(box.timer);
    boxes.delete(box.sandboxID);
    await box.machine.end();
  };
  const lease = (box: Box, seconds: number): void => {
    if (seconds > maxHours * 3_600) throw new HttpError(400, `Timeout cannot be greater than ${maxHours} hours`);
    clearTimeout(box.timer);
    box.endAt = Date.now() + seconds * 1_000;
    box.timer = setTimeout(() => void end(box), Math.min(seconds * 1_000, 2 ** 31 - 1));
    box.timer.unref();
  };
  const make = async (templateID: string, metadata: Box['metadata'], seconds: number): Promise<Box> => {
    const template = templates[templateID];
    if (template === undefined) throw new HttpError(404, `template '${templateID}' not found`);
    if (seconds > maxHours * 3_600) throw new HttpError(400, `Timeout cannot be greater than ${maxHours} hours`);
    const sandboxID = `i${randomBytes(10).toString('hex')}`;
    const machine = await startMachine(sandboxID, { ...template, image: metadata[imageKey] ?? template.image });
    const common = {
      sandboxID,
      templateID,
      metadata,
      machine,
      startedAt: Date.now() + skewMs,
      token: randomBytes(16).toString('hex'),
    };
    const box: Box = { ...common, endAt: 0, state: 'running', timer: undefined };
    boxes.set(sandboxID, box);
    lease(box, seconds);
    return box;
  };
  const envdOf = (templateID: string): string => templates[templateID]?.envdVersion ?? recentEnvd;
  const opened = ({ sandboxID, templateID, token }: Box) => ({
    sandboxID,
    templateID,
    clientID: 'client',
    envdVersion: envdOf(templateID),
    envdAccessToken: token,
  });
  const described = (box: Box) => ({
    sandboxID: box.sandboxID,
    templateID: box.templateID,
    clientID: 'client',
    metadata: box.metadata,
    startedAt: new Date(box.startedAt).toISOString(),
    endAt: new Date(box.endAt + skewMs).toISOString(),
    state: box.state,
    cpuCount: templates[box.templateID]?.cpuCount,
    memoryMB: templates[box.templateID]?.memoryMB,
    diskSizeMB: 10_240,
    envdVersion: envdOf(box.templateID),
  });
  const byId = (id: string): Box => {
    const box = boxes.get(id);
    if (box === undefined) throw new HttpError(404, `sandbox ${id} not found`);
    return box;
  };

  const create = async (request: IncomingMessage): Promise<unknown> => {
    const body = await jsonOf(request);
    creations.push(body);
    const fault = createFaults.shift();
    if (fault === 'busy')
      throw new HttpError(503, 'Failed to place sandbox: not enough capacity, please retry shortly');
    if (fault === 'quota') {
      throw new HttpError(429, 'you have reached the maximum number of concurrent E2B sandboxes (1)');
    }
    if (typeof fault === 'object') {
      const after = fault.retryAfterSec;
      throw new HttpError(429, 'Rate limit exceeded', after === null ? {} : { 'retry-after': String(after) });
    }
    const { templateID, metadata = {}, timeout = 15 } = body as unknown as NewSandbox;
    const box = await make(templateID, metadata, timeout);
    if (fault === 'lost') throw new HttpError(504, 'placement timed out, please retry');
    return opened(box);
  };
  const list = (query: URLSearchParams): unknown => {
    const wanted = [...new URLSearchParams(query.get('metadata') ?? '')].map(
      ([name, value]) => [decodeURIComponent(name), decodeURIComponent(value)] as const,
    );
    const seen = (frozen ?? [...boxes.values()]).filter((box) =>
      wanted.every(([name, value]) => box.metadata[name] === value),
    );
    return seen.map(described);
  };

  const routes: readonly Route[] = [
    ...builds.routes,
    ['POST', /^\/v2\/sandboxes$/, async ({ request }) => [201, await create(request)]],
    ['GET', /^\/v2\/sandboxes$/, async ({ query }) => [200, list(query)]],
    ['GET', /^\/sandboxes\/([^/]+)$/, async ({ id }) => [200, described(byId(id))]],
    ['DELETE', /^\/sandboxes\/([^/]+)$/, async ({ id }) => [204, await end(byId(id))]],
    [
      'POST',
      /^\/sandboxes\/([^/]+)\/timeout$/,
      async ({ id, request }) => [204, lease(byId(id), Number((await jsonOf(request)).timeout))],
    ],
    [
      'POST',
      /^\/v2\/sandboxes\/([^/]+)\/connect$/,
      async ({ id, request }) => {
        const box = byId(id);
        const seconds = Number((await jsonOf(request)).timeout ?? 15);
        if (Date.now() + seconds * 1_000 > box.endAt) lease(box, seconds);
        if (box.state === 'paused') {
          await box.machine.resume();
          box.state = 'running';
        }
        return [200, opened(box)];
      },
    ],
    [
      'GET',
      /^\/templates\/aliases\/([^/]+)$/,
      async ({ id }) => {
        if (templates[id] === undefined) throw new HttpError(404, `template '${id}' not found`);
        return [200, { templateID: id, public: false }];
      },
    ],
    [
      'GET',
      /^\/templates\/([^/]+)\/tags$/,
      async ({ id }) => [200, [{ tag: 'default', buildID: `build-of-${id}`, createdAt: new Date(0).toISOString() }]],
    ],
  ];

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const id = request.headers['e2b-sandbox-id'];
    if (typeof id === 'string') return proxy(boxes.get(id), request, response, proxied);
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://stand-in');
    requests.push(`${request.method} ${pathname}`);
    if (await builds.takesUpload(request, pathname)) return void response.end();
    if (request.headers['x-api-key'] !== key) throw new HttpError(401, 'Invalid API key');
    for (const [method, pattern, handle] of routes) {
      const match = request.method === method ? pattern.exec(pathname) : null;
      if (match === null) continue;
      const [status, body] = await handle({ id: decodeURIComponent(match[1] ?? ''), request, query });
      response.writeHead(status, { 'content-type': 'application/json' });
      return void response.end(status === 204 ? undefined : JSON.stringify(body));
    }
    throw new HttpError(404, `no route ${request.method} ${pathname}`);
  };

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      const { status, message, headers } = error instanceof HttpError ? error : new HttpError(500, String(error));
      response.writeHead(status, { ...headers, 'content-type': 'application/json' });
      response.end(JSON.stringify({ code: status, message }));
    });
  });
  // A client that is busy for a while must not find its connection closed.
  server.keepAliveTimeout = 120_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const named = (name: string): readonly Box[] =>
    [...boxes.values()].filter(({ metadata }) => metadata['temper.name'] === name);
  const first = (name: string): Box => {
    const [box] = named(name);
    if (box === undefined) throw new Error(`expected a sandbox ${name}`);
    return box;
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    key,
    createFaults,
    requests,
    creations,
    freezeLists: () => {
      frozen = [...boxes.values()];
      return () => {
        frozen = undefined;
      };
    },
    skewClock: (ms) => {
      skewMs = ms;
      return () => {
        skewMs = 0;
      };
    },
    vanish: async (name) => {
      for (const box of named(name)) await end(box);
    },
    cutStreams: () => {
      for (const response of proxied) response.destroy();
    },
    ids: (name) => (name === undefined ? [...boxes.keys()] : named(name).map(({ sandboxID }) => sandboxID)),
    leaseEndMs: (name) => first(name).endAt,
    pause: async (name) => {
      const box = first(name);
      box.state = 'paused';
      await box.machine.pause();
    },
    duplicate: async (name) => {
      const { templateID, metadata } = first(name);
      return (await make(templateID, metadata, 600)).sandboxID;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      for (const box of boxes.values()) await end(box);
      await builds.close();
    },
  };
}

interface NewSandbox {
  readonly templateID: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly timeout?: number;
}
