import { existsSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { z } from 'zod';
import type { PolicyCore } from '../core.ts';
import { createPolicyCore, createSamplingCore } from '../create-policy-core.ts';
import type { PolicyError } from '../errors.ts';
import { weightsFile } from '../model/weights-file.ts';
import { serverDirectories } from './directories.ts';
import { type PolicyKeys, requireKeys } from './keys.ts';
import { createPolicies } from './policies.ts';
import { createFutures } from './tinker/futures.ts';
import { openReceivedLog } from './tinker/received.ts';
import { createTinkerRoutes } from './tinker/routes.ts';
import { createSamplers } from './tinker/samplers.ts';
import { createTraining } from './tinker/training.ts';
import { openPinnedVersions } from './vllm/pinned-versions.ts';
import { createVllmRoutes } from './vllm/routes.ts';
import { loadInto, restorePublished } from './weights.ts';

/** Certificate and key as PEM. */
export interface PolicyTls {
  readonly cert: string;
  readonly key: string;
}

export interface PolicyServerOptions {
  /** 0 for any free port. */
  readonly port: number;
  /** The address to listen on; 127.0.0.1 by default. */
  readonly listen?: string;
  /** The keys that requests must have; they need none by default. */
  readonly keys?: PolicyKeys | undefined;
  /** Certificate and key as PEM; plain HTTP by default. */
  readonly tls?: PolicyTls | undefined;
  readonly modelDir: string;
  /** Directory of everything that the server stores: see directories.ts. */
  readonly root: string;
  /** Name of the model on both wires; "policy" by default. */
  readonly modelName?: string;
  readonly contextLength?: number;
  readonly slots?: number;
}

export interface PolicyServer {
  readonly url: string;
  /** Resolves when a thread has died. The process should then end; a new one serves the last published version. */
  readonly crashed: Promise<PolicyError>;
  /** Serves another certificate to new connections. Throws if it cannot be served, or if the server speaks plain HTTP. */
  serveTls(tls: PolicyTls): void;
  close(): Promise<void>;
}

const maxBodyBytes = 256 * 1024 * 1024;
/** Slots of the samplers beside the main one: for Tinker clients, and for each pinned version. */
const secondarySlots = 32;

/**
 * Serves the embedded policy over HTTP or HTTPS, by default on 127.0.0.1: a subset of vLLM's API for its sampler, the
 * Tinker API for its trainer. To requests that name a policy in a header, the former serves it as if it were the only one.
 *
 * Guarantees: a request is done once per (model, seq_id), and a failed one stays failed; weights are loaded only from below
 * the root or the model directory; a restarted server serves the last published version. A restart loses models and futures,
 * and the end of a session its models: requests on such a model fail as "not loaded", and the effects that count are in
 * checkpoints.
 */
export async function startPolicyServer(options: PolicyServerOptions): Promise<PolicyServer> {
  const { root, modelName = 'policy' } = options;
  const modelDir = resolve(options.modelDir);
  const directories = serverDirectories(root, modelDir);
  await mkdir(directories.checkpoints, { recursive: true });
  const core = await createPolicyCore(coreOptions({ ...options, modelDir }));
  const openSampler = (slots = options.slots) => createSamplingCore(coreOptions({ ...options, modelDir, slots }));
  const loadedPath = await restorePublished(core, directories, modelDir);
  const received = await openReceivedLog(directories.received);
  const samplers = createSamplers(async () => openSampler(secondarySlots));
  const openPinned = () => openSampler(secondarySlots);
  const pinned = openPinnedVersions(directories, (version) => loadInto(openPinned(), version, modelDir));
  const policies = createPolicies({ modelName, modelDir, directories, open: () => openSampler(), openPinned });
  const training = createTraining({ trainer: core.trainer, directories, received, modelDir });

  const app = new Hono();
  if (options.keys !== undefined) app.use(requireKeys(options.keys));
  app.use(bodyLimit({ maxSize: maxBodyBytes }));
  app.use(policies.handler);
  app.route('/', createVllmRoutes({ core, pinned, modelName, directories, loadedPath }));
  app.route(
    '/api/v1',
    createTinkerRoutes({
      modelName,
      contextLength: core.model.contextLength,
      training,
      samplers,
      futures: createFutures(),
      directories,
      endTokenIds: endTokenIds(modelDir),
      baseWeights: once(() => baseWeights(core, modelDir, root)),
    }),
  );
  // The server's own view, for tests and inspection: steps in order, digests of batches, checksums.
  app.get('/temper/received', async (c) => c.json({ entries: await received.entries(c.req.query('model')) }));
  app.get('/temper/sampler', async (c) => c.json(await core.sampler.status()));

  const release = async () => {
    await Promise.all([core.close(), samplers.close(), pinned.close(), policies.close()]);
    await received.close();
  };
  const { url, serveTls, stop } = await listen(app, options).catch(async (error: unknown) => {
    await release();
    throw error;
  });
  return {
    url,
    crashed: core.crashed,
    serveTls,
    async close() {
      await stop();
      await release();
    },
  };
}

const coreOptions = ({
  modelDir,
  contextLength,
  slots,
}: Omit<PolicyServerOptions, 'slots'> & { slots?: number | undefined }) => ({
  modelDir,
  contextLength,
  slots,
});

const generationConfig = z.object({ eos_token_id: z.union([z.int(), z.array(z.int())]).nullish() });

/** Returns the tokens with which the base model ends a sequence, by its `generation_config.json`. */
function endTokenIds(modelDir: string): readonly number[] {
  const path = join(modelDir, 'generation_config.json');
  if (!existsSync(path)) return [];
  const { eos_token_id: ids } = generationConfig.parse(JSON.parse(readFileSync(path, 'utf8')));
  return typeof ids === 'number' ? [ids] : (ids ?? []);
}

/**
 * Returns a directory with the base model's weights as a file, as samplers need them; saves the initial weights if there is
 * none.
 */
async function baseWeights({ trainer }: PolicyCore, modelDir: string, root: string): Promise<string> {
  if (existsSync(join(modelDir, weightsFile))) return modelDir;
  const directory = join(resolve(root), 'base');
  if (existsSync(directory)) return directory;
  const modelId = 'base';
  await trainer.createModel(modelId, { baseDir: modelDir });
  try {
    await trainer.save(modelId, directory, { optimizer: false });
  } finally {
    await trainer.unload(modelId);
  }
  return directory;
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => {
    made ??= work();
    return made;
  };
}

const listenAdvice: Readonly<Record<string, string>> = {
  EADDRINUSE: '; stop what listens there, or choose another port',
  EADDRNOTAVAIL: '; choose an address of this machine, or 0.0.0.0 for all of them',
};

async function listen(
  app: Hono,
  { port, listen: hostname = '127.0.0.1', tls }: Pick<PolicyServerOptions, 'port' | 'listen' | 'tls'>,
): Promise<Pick<PolicyServer, 'url' | 'serveTls'> & { stop(): Promise<void> }> {
  const { promise, resolve: ready, reject } = Promise.withResolvers<AddressInfo>();
  const base = { fetch: app.fetch, port, hostname };
  const server = serve(
    tls === undefined ? base : { ...base, createServer: createTlsServer, serverOptions: { ...tls } },
    ready,
  );
  server.once('error', (cause: NodeJS.ErrnoException) => {
    const advice = listenAdvice[cause.code ?? ''] ?? '';
    reject(
      new Error(`policy server: expected to listen on ${hostname}:${port}, got ${cause.message}${advice}`, { cause }),
    );
  });
  const address = await promise;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${hostname}:${address.port}`,
    serveTls(renewed) {
      if (!('setSecureContext' in server))
        throw new Error('policy server: it speaks plain HTTP, without a certificate');
      server.setSecureContext(renewed);
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}
