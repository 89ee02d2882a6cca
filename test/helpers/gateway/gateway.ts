import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Engine } from '../../../infra/engine/engine.ts';
import { createGatewayControl, type GatewayControlClient } from '../../../infra/gateway/client.ts';
import type { OpenSession } from '../../../infra/gateway/control.ts';
import { secretOf } from '../../../infra/gateway/secret.ts';
import { type GatewayEvent, type GatewayOptions, startGateway } from '../../../infra/gateway/server.ts';
import { socketOf } from '../../../infra/gateway/sockets.ts';
import { createUpstreams } from '../../../infra/gateway/upstream/upstreams.ts';
import { loadModel, type Model } from '../../../infra/kits/chat-tokens/index.ts';
import type { Store } from '../../../infra/store/store.ts';
import type { Trace, TraceSummary } from '../../../workflows/contracts/trace.ts';
import { createSingleEngine } from '../engine/single-engine.ts';
import { writeTinyModel } from '../models/tiny-model.ts';
import { createFileStore } from '../store/file-store.ts';

/** A gateway in its own directories, over real sockets, with its clients and its store. */
export interface TestGateway extends AsyncDisposable {
  readonly options: Omit<GatewayOptions, 'policies' | 'log'>;
  readonly model: Model;
  readonly control: GatewayControlClient;
  readonly store: Store;
  readonly events: readonly GatewayEvent[];
  open(session: string, changes?: Partial<OpenSession>): Promise<string>;
  /** Posts to chat completions with a session's secret. */
  chat(secret: string, body: object, signal?: AbortSignal): Promise<Reply>;
  /** Posts to chat completions with more headers: by default with that of a client which sends a request again. */
  chatAgain(secret: string, body: object, headers?: Headers, signal?: AbortSignal): Promise<Reply>;
  post(path: string, secret: string, body: object, more?: Pick<Call, 'signal' | 'headers'>): Promise<Reply>;
  send(call: Call): Promise<Reply>;
  traceOf(summary: TraceSummary): Promise<Trace>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

type Headers = Readonly<Record<string, string>>;

/** The header of a client that sends a request again. */
export const retried: Headers = { 'x-stainless-retry-count': '1' };

export interface Call {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  readonly signal?: AbortSignal;
}

export interface Reply {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read replies as clients do
  readonly json: any;
}

export async function startTestGateway(engine: Engine, changes: Partial<GatewayOptions> = {}): Promise<TestGateway> {
  const tiny = await writeTinyModel();
  const dir = await mkdtemp(join(tmpdir(), 'temper-gateway-'));
  const options = {
    name: 'gateway',
    sockets: { sessions: join(dir, 'sessions'), agents: join(dir, 'agents'), control: join(dir, 'control') },
    journalDir: join(dir, 'journals'),
    store: createFileStore(join(dir, 'store')),
    modelDir: tiny.dir,
    engineGraceMs: 60_000,
    upstreams: createUpstreams(join(dir, 'upstreams.json'), {}),
    stackKeys: [randomBytes(32)] as const,
    ...changes,
  };
  const { store }: Pick<GatewayOptions, 'store'> = options;
  const events: GatewayEvent[] = [];
  const policies = createSingleEngine(engine, options.engineGraceMs);
  const start = () => startGateway({ ...options, policies, log: changes.log ?? ((event) => events.push(event)) });
  let gateway: Awaited<ReturnType<typeof start>> | null = await start();
  const control = createGatewayControl([socketOf(options.sockets.control, options.name)]);
  const stop = async (): Promise<void> => {
    await gateway?.close();
    gateway = null;
  };
  const send = (call: Call): Promise<Reply> => sendTo(socketOf(options.sockets.agents, options.name), call);
  const post: TestGateway['post'] = (path, secret, body, { headers, ...more } = {}) =>
    send({
      method: 'POST',
      path,
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      ...more,
    });
  const ofSignal = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });
  return {
    options,
    model: await loadModel(options.modelDir),
    control,
    store,
    events,
    async open(session, more) {
      await control.open({ ...openSession(session), ...more });
      return secretOf(options.stackKeys[0], session);
    },
    send,
    post,
    chat: (secret, body, signal) => post('/v1/chat/completions', secret, body, ofSignal(signal)),
    chatAgain: (secret, body, headers = retried, signal) =>
      post('/v1/chat/completions', secret, body, { headers, ...ofSignal(signal) }),
    traceOf: async (summary) => (await store.getJson(summary.trace.digest)) as Trace,
    stop,
    async restart() {
      await stop();
      gateway = await start();
    },
    async [Symbol.asyncDispose]() {
      await control.end();
      await stop();
      await rm(dir, { recursive: true, force: true });
      await tiny[Symbol.asyncDispose]();
    },
  };
}

export function openSession(session: string): OpenSession {
  return {
    session,
    sampling: { temperature: 1, topP: 1, topK: -1, maxTokensPerTurn: 500 },
    maxTurns: 50,
    expiresAt: Date.now() + 600_000,
    seed: 'run/7/0/0/1',
    group: null,
  };
}

export function sendTo(socketPath: string, call: Call): Promise<Reply> {
  const { method = 'GET', path = '/', headers = {}, body, signal } = call;
  return new Promise((resolve, reject) => {
    const sent = request(
      { socketPath, method, path, headers, ...(signal === undefined ? {} : { signal }) },
      (reply) => {
        text(reply).then((body) => {
          const json = body.startsWith('{') ? JSON.parse(body) : undefined;
          resolve({ status: reply.statusCode ?? 0, headers: reply.headers, text: body, json });
        }, reject);
      },
    );
    sent.once('error', reject);
    sent.end(body);
  });
}

/** Returns the JSON chunks of a stream of server-sent events. */
// biome-ignore lint/suspicious/noExplicitAny: tests read replies as clients do
export function chunksOf(reply: Reply): any[] {
  return reply.text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice('data: '.length)));
}
