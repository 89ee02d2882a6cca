import { existsSync, realpathSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { PolicyCore } from '../core.ts';
import { createPolicyCore } from '../create-policy-core.ts';
import type { PolicyError } from '../errors.ts';
import { weightsFile } from '../model/weights-file.ts';
import { type Places, placesOf, readPublished } from './places.ts';
import { createFutures } from './tinker/futures.ts';
import { openReceivedLog } from './tinker/received.ts';
import { createTinkerRoutes } from './tinker/routes.ts';
import { createSamplers } from './tinker/samplers.ts';
import { createTraining } from './tinker/training.ts';
import { openHeld } from './vllm/held.ts';
import { createVllmRoutes } from './vllm/routes.ts';

export interface PolicyServerOptions {
  /** 0: any free one. */
  readonly port: number;
  readonly modelDir: string;
  /** Everything that the server keeps: see places.ts. */
  readonly root: string;
  /** Name of the model on both wires; "policy" by default. */
  readonly modelName?: string;
  readonly contextLength?: number;
  readonly slots?: number;
}

export interface PolicyServer {
  readonly url: string;
  /** Resolves when a thread died; the process should end, and come back on the last published version. */
  readonly crashed: Promise<PolicyError>;
  close(): Promise<void>;
}

const maxBodyBytes = 256 * 1024 * 1024;
/** Tinker clients sample on few slots of their own, and so do those of a version that is held. */
const otherSlots = 32;

/**
 * The embedded policy behind HTTP on 127.0.0.1: the vLLM subset for its sampler, the Tinker API for its trainer.
 *
 * Guarantees: a request is done once per (model, seq_id); a failed one stays failed; weights come only from below the root
 * or the model directory; a restarted server serves the last published version. Not kept over a restart: models and futures —
 * models answer "not loaded", and the effects that count are in checkpoints.
 */
export async function startPolicyServer(options: PolicyServerOptions): Promise<PolicyServer> {
  const { root, modelName = 'policy' } = options;
  const modelDir = resolve(options.modelDir);
  const places = placesOf(root, modelDir);
  await mkdir(places.checkpoints, { recursive: true });
  const openCore = (slots: number | undefined) => openPolicyCore({ ...options, modelDir }, slots);
  const core = await openCore(options.slots);
  const loadedPath = await restorePublished(core, places, modelDir);
  const received = await openReceivedLog(places.received);
  const samplers = createSamplers(() => openCore(otherSlots));
  const held = openHeld(places, async ({ name, path }) => {
    const other = await openCore(otherSlots);
    await loadInto(other, path, name, modelDir).catch(async (error: unknown) => {
      await other.close();
      throw error;
    });
    return other;
  });
  const training = createTraining({ trainer: core.trainer, places, received, modelDir });

  const app = new Hono().use(bodyLimit({ maxSize: maxBodyBytes }));
  app.route('/', createVllmRoutes({ core, held, modelName, places, loadedPath }));
  app.route(
    '/api/v1',
    createTinkerRoutes({
      modelName,
      contextLength: core.model.contextLength,
      training,
      samplers,
      futures: createFutures(),
      received,
      places,
      baseWeights: once(() => baseWeights(core, modelDir, root)),
    }),
  );
  // What the server itself saw, for tests and for a look at it: steps in order, digests of batches, checksums.
  app.get('/temper/received', (c) => c.json({ entries: received.entries(c.req.query('model')) }));
  app.get('/temper/sampler', async (c) => c.json(await core.sampler.status()));

  const release = async () => {
    await Promise.all([core.close(), samplers.close(), held.close()]);
    await received.close();
  };
  const { url, stop } = await listen(app, options.port).catch(async (error: unknown) => {
    await release();
    throw error;
  });
  return {
    url,
    crashed: core.crashed,
    async close() {
      await stop();
      await release();
    },
  };
}

function openPolicyCore(options: PolicyServerOptions, slots: number | undefined): Promise<PolicyCore> {
  const { modelDir, contextLength } = options;
  return createPolicyCore({
    modelDir,
    ...(contextLength === undefined ? {} : { contextLength }),
    ...(slots === undefined ? {} : { slots }),
  });
}

/** Published weights that are gone leave the base model under a label that nobody may take for a version. */
async function restorePublished(core: PolicyCore, places: Places, modelDir: string): Promise<string> {
  const published = readPublished(places);
  if (published === null) return modelDir;
  if (existsSync(join(published.path, weightsFile))) {
    await core.sampler.loadWeights(published.path, published.label);
    return published.path;
  }
  await core.sampler.setVersion(published.path === modelDir ? published.label : 'default');
  return modelDir;
}

/** The base model's directory may have no weights of its own: then they are those that a sampler starts with. */
async function loadInto({ sampler }: PolicyCore, path: string, label: string, modelDir: string): Promise<void> {
  if (path === realpathSync(modelDir) && !existsSync(join(path, weightsFile))) await sampler.setVersion(label);
  else await sampler.loadWeights(path, label);
}

/** A model directory without weights is initialised from its seed; Tinker samplers need them as a file. */
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

async function listen(app: Hono, port: number): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const { promise, resolve: ready, reject } = Promise.withResolvers<AddressInfo>();
  const server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, ready);
  server.once('error', (cause: NodeJS.ErrnoException) => {
    const advice = cause.code === 'EADDRINUSE' ? '; stop what listens there, or choose another port' : '';
    reject(
      new Error(`policy server: expected to listen on 127.0.0.1:${port}, got ${cause.message}${advice}`, { cause }),
    );
  });
  const address = await promise;
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}
