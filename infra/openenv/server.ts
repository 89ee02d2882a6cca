import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type ServerType, serve } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { sessionHeader, turnHeader } from '../gateway/upstream/ask.ts';
import type { ServerTls } from '../server-tls.ts';
import { type AccessKeys, refusalOf } from './access.ts';
import { messageBytes, serveClientSockets } from './client-sockets.ts';
import { type ConnectionLimits, createConnections, type Log } from './connections.ts';
import type { Environment } from './episodes/environment.ts';
import { completionOf } from './episodes/model-call.ts';
import { type Metadata, openApi, schemas } from './protocol/describe.ts';
import { answerRpc } from './protocol/json-rpc.ts';

export interface OpenEnvServerOptions {
  readonly environment: Environment;
  readonly metadata: Metadata;
  readonly limits: ConnectionLimits;
  /** 0 for any free port. */
  readonly port: number;
  /** The address to listen on. */
  readonly listen: string;
  readonly keys: AccessKeys;
  /** Null for plain HTTP. */
  readonly tls: ServerTls | null;
  readonly log: Log;
}

export interface OpenEnvServer {
  readonly url: string;
  /** Serves another certificate to new connections. Throws an Error if the server speaks plain HTTP. */
  serveTls(tls: ServerTls): void;
  /** Ends all episodes, waits until their rollouts have cleaned up, and closes every connection. */
  close(): Promise<void>;
}

/** The path of the endpoint that the gateways ask, below which `/chat/completions` is. */
export const modelPath = '/model/v1';

/** Bytes of a model call, which holds the whole conversation; more than the gateway takes from an agent. */
const modelCallBytes = 32 * 1024 * 1024;

/** The most connections, of clients and gateways together: many more than episodes, each of which needs two. */
const maxConnections = 4_096;

/** Serves an environment: to clients by the OpenEnv protocol, and to gateways as the model that the clients play. */
export async function startOpenEnvServer(options: OpenEnvServerOptions): Promise<OpenEnvServer> {
  const { environment, limits, keys, log } = options;
  const connections = createConnections({ environment, limits, log });
  const { server, url } = await listen(routesOf(options), options);
  const endSockets = serveClientSockets(server, connections, keys);
  return {
    url,
    serveTls(renewed) {
      if (!('setSecureContext' in server))
        throw new Error('OpenEnv server: it speaks plain HTTP, without a certificate');
      server.setSecureContext(renewed);
    },
    async close() {
      await connections.close();
      await environment.idle();
      endSockets();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      });
    },
  };
}

function routesOf({ environment, metadata, keys, log }: OpenEnvServerOptions): Hono {
  const app = new Hono();
  app.use(async (c, next) => {
    const [authorization, host, origin] = ['authorization', 'host', 'origin'].map((name) => c.req.header(name));
    const refusal = refusalOf(keys, { path: c.req.path, authorization, host, origin });
    return refusal === null ? next() : c.json({ error: { message: refusal.message } }, refusal.status);
  });
  app.get('/health', (c) => c.json({ status: 'healthy' }));
  app.get('/metadata', (c) => c.json(metadata));
  app.get('/schema', (c) => c.json(schemas()));
  app.get('/openapi.json', (c) => c.json(openApi(metadata)));
  app.post('/mcp', bodyLimit({ maxSize: messageBytes }), async (c) => {
    const body: unknown = await c.req.json().catch(() => null);
    return c.json(await answerRpc(body, { tools: environment.tools, session: null }));
  });
  app.post(`${modelPath}/chat/completions`, bodyLimit({ maxSize: modelCallBytes }), async (c) => {
    const session = c.req.header(sessionHeader);
    const key = c.req.header(turnHeader);
    if (session === undefined || key === undefined) {
      const message = `expected the headers ${sessionHeader} and ${turnHeader}; set namesSession of this model in upstreams.json to true`;
      return c.json({ error: { message } }, 400);
    }
    const body: unknown = await c.req.json().catch(() => null);
    const reply = await environment.ask({ session, key, body }, c.req.raw.signal);
    if (reply !== null) return c.json(completionOf(metadata.name, key, reply));
    // A rollout that an earlier server began, or one whose start this server has not seen yet: the gateway asks again.
    return c.json({ error: { message: `session ${session} belongs to no episode of this server` } }, 503);
  });
  app.onError((error, c) => {
    // The caller may have gone, as when its gateway stops.
    if (!c.req.raw.signal.aborted) log.warn({ error: error.message, path: c.req.path }, 'request failed');
    return c.json({ error: { message: error.message } }, 500);
  });
  return app;
}

async function listen(
  app: Hono,
  { port, listen: hostname, tls, log }: OpenEnvServerOptions,
): Promise<{ readonly server: ServerType; readonly url: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<AddressInfo>();
  const base = { fetch: app.fetch, port, hostname };
  const server = serve(
    tls === null ? base : { ...base, createServer: createTlsServer, serverOptions: { ...tls } },
    resolve,
  );
  server.once('error', (cause: NodeJS.ErrnoException) => {
    const advice = cause.code === 'EADDRINUSE' ? '; stop what listens there, or choose another port' : '';
    reject(
      new Error(`OpenEnv server: expected to listen on ${hostname}:${port}, got ${cause.message}${advice}`, { cause }),
    );
  });
  const address = await promise;
  server.on('error', (error: Error) => log.warn({ error: error.message }, 'a connection could not be accepted'));
  if ('maxConnections' in server) server.maxConnections = maxConnections;
  return { server, url: `${tls === null ? 'http' : 'https'}://${hostname}:${address.port}` };
}
