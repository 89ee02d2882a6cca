import { type Context, Hono } from 'hono';
import { z } from 'zod';
import type { SamplingCore } from '../../core.ts';
import { errorMessage } from '../../errors.ts';
import { type ServerDirectories, writePublished } from '../directories.ts';
import { statusOf } from '../tinker/results.ts';
import { addAdapterRoutes } from './adapter-routes.ts';
import { chunksOf, collectChunks, joined } from './chunks.ts';
import { readBody, VllmError } from './errors.ts';
import type { PinnedVersions } from './pinned-versions.ts';
import { type Chunk, completionShape, generateShape, type ReplyShape } from './reply-shapes.ts';
import { completionBody, externalId, type GenerationBody, generateBody, toSampleRequest } from './requests.ts';

export interface VllmDependencies {
  readonly core: SamplingCore;
  readonly pinned: PinnedVersions;
  readonly modelName: string;
  readonly directories: ServerDirectories;
  /** The directory of the weights in service at the start. */
  readonly loadedPath: string;
}

interface VllmState extends Omit<VllmDependencies, 'loadedPath'> {
  /** The directory of the weights in service now. */
  readonly served: { path: string };
}

/**
 * The subset of vLLM's API that temper uses: token ids in and out with version spans, pause, and weights from a checkpoint of
 * this server.
 */
export function createVllmRoutes({ loadedPath, ...dependencies }: VllmDependencies): Hono {
  const state: VllmState = { ...dependencies, served: { path: loadedPath } };
  const app = new Hono();
  app.onError((error, c) => {
    const status = error instanceof VllmError ? error.status : statusOf(error);
    return c.json(
      { error: { message: errorMessage(error), type: errorType(status), param: null, code: status } },
      status,
    );
  });
  addInfoRoutes(app, state);
  addGenerationRoutes(app, state);
  addPauseRoutes(app, state);
  addWeightRoutes(app, state);
  addAdapterRoutes(app, state.pinned, state.directories, state.modelName);
  return app;
}

function addInfoRoutes(app: Hono, { core, pinned, modelName, served }: VllmState): void {
  app.get('/health', async (c) => {
    await core.sampler.status();
    return c.body(null, 200);
  });
  app.get('/version', (c) => c.json({ version: 'temper' }));
  app.get('/v1/models', (c) => {
    const shown = { object: 'model', owned_by: 'temper', max_model_len: core.model.contextLength };
    const base = { id: modelName, ...shown, root: served.path, parent: null };
    const others = pinned
      .list()
      .map(({ name, path, since }) => ({ id: name, ...shown, root: path, parent: modelName, created: since }));
    return c.json({ object: 'list', data: [base, ...others] });
  });
}

function addGenerationRoutes(app: Hono, { core, pinned, modelName }: VllmState): void {
  /** Running requests, by the id that their callers know. */
  const running = new Map<string, Set<string>>();
  const handle = async (c: Context, body: GenerationBody, shape: ReplyShape) => {
    const model = body.model ?? modelName;
    const sampler = model === modelName ? core.sampler : pinned.sampler(model);
    if (sampler === null) {
      const names = [modelName, ...pinned.list().map(({ name }) => name)].join('`, `');
      throw new VllmError(404, `The model \`${model}\` does not exist; this server has \`${names}\``);
    }
    const request = toSampleRequest(body, shape.prefix, core.model.contextLength);
    const id = externalId(request.requestId);
    const disconnected = new AbortController();
    const signal = AbortSignal.any([disconnected.signal, c.req.raw.signal]);
    const tokens = tracked(running, id, request.requestId, chunksOf(sampler, request, signal));
    if (body.stream !== true) return c.json(shape.whole(id, model, await collectChunks(tokens), body));
    // The first event decides the status, so that a refused request is a 400 and not a broken stream.
    const chunks = joined(tokens);
    const first = await chunks.next();
    const stream = eventStream(first, chunks, (chunk) => shape.chunk(id, model, chunk, body), disconnected);
    return c.body(stream, 200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  };
  app.post('/inference/v1/generate', async (c) => handle(c, await readBody(c, generateBody), generateShape));
  app.post('/v1/completions', async (c) => handle(c, await readBody(c, completionBody), completionShape));

  const abort = async (ids: readonly string[] | 'all') => {
    const found =
      ids === 'all'
        ? ids
        : ids.flatMap((id) => [...(running.get(id) ?? []), ...(running.get(`${generateShape.prefix}${id}`) ?? [])]);
    return found.length === 0 ? 0 : (await core.sampler.abort(found)) + (await pinned.abort(found));
  };
  app.post('/inference/v1/abort_requests', async (c) => {
    await abort((await readBody(c, z.object({ request_ids: z.array(z.string()) }))).request_ids);
    return c.body(null, 200);
  });
  app.post('/abort_requests', async (c) => {
    const { request_ids: ids } = await readBody(c, z.object({ request_ids: z.array(z.string()).nullish() }));
    const aborted = await abort(ids?.length ? ids : 'all');
    return c.json({ status: 'aborted', aborted });
  });
}

function addPauseRoutes(app: Hono, { core }: VllmState): void {
  const mode = z.enum(['abort', 'wait', 'keep']).default('abort');
  app.post('/pause', async (c) => {
    const parsed = mode.safeParse(c.req.query('mode'));
    if (!parsed.success) throw new VllmError(400, `mode: expected abort, wait or keep, got ${c.req.query('mode')}`);
    await core.sampler.pause(parsed.data);
    return c.json({ status: 'paused' });
  });
  app.post('/resume', async (c) => {
    await core.sampler.resume();
    return c.json({ status: 'resumed' });
  });
  app.get('/is_paused', async (c) => c.json({ is_paused: (await core.sampler.status()).paused }));
}

function addWeightRoutes(app: Hono, { core, directories, served }: VllmState): void {
  const rpc = z.object({ method: z.string(), kwargs: z.object({ weights_path: z.string() }).partial().default({}) });
  app.post('/collective_rpc', async (c) => {
    const { method, kwargs } = await readBody(c, rpc);
    if (method !== 'reload_weights') throw new VllmError(400, `method: expected reload_weights, got ${method}`);
    const path = kwargs.weights_path ?? served.path;
    const real = directories.confine(path);
    if (real === null) {
      throw new VllmError(400, `weights_path: expected a checkpoint below ${directories.checkpoints}, got ${path}`);
    }
    // Until the new weights are named, the tokens that they sample belong to no version.
    await core.sampler.loadWeights(real, 'default', { cache: 'recompute' });
    served.path = real;
    return c.json({ results: [null] });
  });
  app.post('/update_weight_version', async (c) => {
    const { new_version: label } = await readBody(c, z.object({ new_version: z.string().min(1).max(200) }));
    // The record is written first: after a restart, no older version may be served than one that clients have seen.
    await writePublished(directories, { path: served.path, label });
    await core.sampler.setVersion(label);
    return c.json({ success: true, new_version: label });
  });
  app.get('/weight_info', async (c) => c.json({ weight_version: (await core.sampler.status()).version }));
  app.post('/weight_checker', async (c) => {
    const { action } = await readBody(c, z.object({ action: z.string() }));
    if (action !== 'checksum') throw new VllmError(400, `action: expected checksum, got ${action}`);
    return c.json({ checksums: { model: (await core.sampler.status()).checksum } });
  });
  app.post('/reset_prefix_cache', (c) => c.json({ success: true })); // loading weights drops every cache
}

/** Registers a generation under its caller's id while it runs. */
async function* tracked(
  running: Map<string, Set<string>>,
  id: string,
  requestId: string,
  chunks: AsyncGenerator<Chunk>,
): AsyncGenerator<Chunk> {
  const same = running.get(id) ?? new Set();
  running.set(id, same.add(requestId));
  try {
    yield* chunks;
  } finally {
    same.delete(requestId);
    if (same.size === 0) running.delete(id);
  }
}

function eventStream(
  first: IteratorResult<Chunk>,
  chunks: AsyncGenerator<Chunk>,
  shape: (chunk: Chunk) => unknown,
  disconnected: AbortController,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next: IteratorResult<Chunk> | null = first;
  return new ReadableStream({
    async pull(controller) {
      try {
        const result = next ?? (await chunks.next());
        next = null;
        if (result.done !== true) {
          controller.enqueue(encoder.encode(`data: ${JSON.stringify(shape(result.value))}\n\n`));
          return;
        }
      } catch (error) {
        controller.enqueue(encoder.encode(`data: ${JSON.stringify({ error: { message: errorMessage(error) } })}\n\n`));
      }
      controller.enqueue(encoder.encode('data: [DONE]\n\n'));
      controller.close();
    },
    cancel: () => disconnected.abort(),
  });
}

function errorType(status: number): string {
  return status === 404 ? 'NotFoundError' : status < 500 ? 'BadRequestError' : 'InternalServerError';
}
