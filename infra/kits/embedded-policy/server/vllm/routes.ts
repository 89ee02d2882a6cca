import { type Context, Hono } from 'hono';
import { z } from 'zod';
import type { PolicyCore } from '../../core.ts';
import { type Places, writePublished } from '../places.ts';
import { messageOf, statusOf } from '../tinker/outcome.ts';
import { joined, piecesOf, wholeOf } from './generation.ts';
import type { Held } from './held.ts';
import { addHeldRoutes } from './held-routes.ts';
import { bodyOf, Refusal } from './refusal.ts';
import { completionBody, externalId, type GenerationBody, generateBody, toSampleRequest } from './requests.ts';
import { completionShape, generateShape, type Piece, type Shape } from './shapes.ts';

export interface VllmDependencies {
  readonly core: PolicyCore;
  readonly held: Held;
  readonly modelName: string;
  readonly places: Places;
  /** Where the weights being served came from. */
  readonly loadedPath: string;
}

interface Routes extends Omit<VllmDependencies, 'loadedPath'> {
  /** Where the weights come from that are served now. */
  readonly served: { path: string };
}

/** The vLLM subset: token-in/token-out with version spans, pause, weights from a checkpoint of this server. */
export function createVllmRoutes({ loadedPath, ...dependencies }: VllmDependencies): Hono {
  const routes: Routes = { ...dependencies, served: { path: loadedPath } };
  const app = new Hono();
  app.onError((error, c) => {
    const status = error instanceof Refusal ? error.status : statusOf(error);
    return c.json({ error: { message: messageOf(error), type: kindOf(status), param: null, code: status } }, status);
  });
  addInfoRoutes(app, routes);
  addGenerationRoutes(app, routes);
  addPauseRoutes(app, routes);
  addWeightRoutes(app, routes);
  addHeldRoutes(app, routes.held, routes.places, routes.modelName);
  return app;
}

function addInfoRoutes(app: Hono, { core, held, modelName, served }: Routes): void {
  app.get('/health', async (c) => {
    await core.sampler.status();
    return c.body(null, 200);
  });
  app.get('/version', (c) => c.json({ version: 'temper' }));
  app.get('/v1/models', (c) => {
    const shown = { object: 'model', owned_by: 'temper', max_model_len: core.model.contextLength };
    const base = { id: modelName, ...shown, root: served.path, parent: null };
    const others = held
      .list()
      .map(({ name, path, since }) => ({ id: name, ...shown, root: path, parent: modelName, created: since }));
    return c.json({ object: 'list', data: [base, ...others] });
  });
}

function addGenerationRoutes(app: Hono, { core, held, modelName }: Routes): void {
  /** Requests under way, by the id that their callers know. */
  const running = new Map<string, Set<string>>();
  const handle = async (c: Context, body: GenerationBody, shape: Shape) => {
    const model = body.model ?? modelName;
    const sampler = model === modelName ? core.sampler : held.sampler(model);
    if (sampler === null) {
      const names = [modelName, ...held.list().map(({ name }) => name)].join('`, `');
      throw new Refusal(404, `The model \`${model}\` does not exist; this server has \`${names}\``);
    }
    const request = toSampleRequest(body, shape.prefix, core.model.contextLength);
    const id = externalId(request.requestId);
    const gone = new AbortController();
    const signal = AbortSignal.any([gone.signal, c.req.raw.signal]);
    const pieces = tracked(running, id, request.requestId, piecesOf(sampler, request, signal));
    if (body.stream !== true) return c.json(shape.whole(id, model, await wholeOf(pieces), body));
    // The first event decides the status: a refused request is a 400, not a broken stream.
    const chunks = joined(pieces);
    const first = await chunks.next();
    const stream = eventStream(first, chunks, (piece) => shape.chunk(id, model, piece, body), gone);
    return c.body(stream, 200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  };
  app.post('/inference/v1/generate', async (c) => handle(c, await bodyOf(c, generateBody), generateShape));
  app.post('/v1/completions', async (c) => handle(c, await bodyOf(c, completionBody), completionShape));

  const abort = async (ids: readonly string[] | 'all') => {
    const found =
      ids === 'all'
        ? ids
        : ids.flatMap((id) => [...(running.get(id) ?? []), ...(running.get(`${generateShape.prefix}${id}`) ?? [])]);
    return found.length === 0 ? 0 : (await core.sampler.abort(found)) + (await held.abort(found));
  };
  app.post('/inference/v1/abort_requests', async (c) => {
    await abort((await bodyOf(c, z.object({ request_ids: z.array(z.string()) }))).request_ids);
    return c.body(null, 200);
  });
  app.post('/abort_requests', async (c) => {
    const { request_ids: ids } = await bodyOf(c, z.object({ request_ids: z.array(z.string()).nullish() }));
    const aborted = await abort(ids?.length ? ids : 'all');
    return c.json({ status: 'aborted', aborted });
  });
}

function addPauseRoutes(app: Hono, { core }: Routes): void {
  const mode = z.enum(['abort', 'wait', 'keep']).default('abort');
  app.post('/pause', async (c) => {
    const parsed = mode.safeParse(c.req.query('mode'));
    if (!parsed.success) throw new Refusal(400, `mode: expected abort, wait or keep, got ${c.req.query('mode')}`);
    await core.sampler.pause(parsed.data);
    return c.json({ status: 'paused' });
  });
  app.post('/resume', async (c) => {
    await core.sampler.resume();
    return c.json({ status: 'resumed' });
  });
  app.get('/is_paused', async (c) => c.json({ is_paused: (await core.sampler.status()).paused }));
}

function addWeightRoutes(app: Hono, { core, places, served }: Routes): void {
  const rpc = z.object({ method: z.string(), kwargs: z.object({ weights_path: z.string() }).partial().default({}) });
  app.post('/collective_rpc', async (c) => {
    const { method, kwargs } = await bodyOf(c, rpc);
    if (method !== 'reload_weights') throw new Refusal(400, `method: expected reload_weights, got ${method}`);
    const asked = kwargs.weights_path ?? served.path;
    const real = places.confined(asked);
    if (real === null) {
      throw new Refusal(400, `weights_path: expected a checkpoint below ${places.checkpoints}, got ${asked}`);
    }
    // Until the new weights are named, what they sample belongs to no version.
    await core.sampler.loadWeights(real, 'default', { cache: 'recompute' });
    served.path = real;
    return c.json({ results: [null] });
  });
  app.post('/update_weight_version', async (c) => {
    const { new_version: label } = await bodyOf(c, z.object({ new_version: z.string().min(1).max(200) }));
    // On disk first: a restart must never come back on an older version than one that was seen.
    await writePublished(places, { path: served.path, label });
    await core.sampler.setVersion(label);
    return c.json({ success: true, new_version: label });
  });
  app.get('/weight_info', async (c) => c.json({ weight_version: (await core.sampler.status()).version }));
  app.post('/weight_checker', async (c) => {
    const { action } = await bodyOf(c, z.object({ action: z.string() }));
    if (action !== 'checksum') throw new Refusal(400, `action: expected checksum, got ${action}`);
    return c.json({ checksums: { model: (await core.sampler.status()).checksum } });
  });
  app.post('/reset_prefix_cache', (c) => c.json({ success: true })); // loading weights forgets every cache by itself
}

/** Notes a generation under its caller's id while it runs. */
async function* tracked(
  running: Map<string, Set<string>>,
  id: string,
  requestId: string,
  pieces: AsyncGenerator<Piece>,
): AsyncGenerator<Piece> {
  const same = running.get(id) ?? new Set();
  running.set(id, same.add(requestId));
  try {
    yield* pieces;
  } finally {
    same.delete(requestId);
    if (same.size === 0) running.delete(id);
  }
}

function eventStream(
  first: IteratorResult<Piece>,
  pieces: AsyncGenerator<Piece>,
  worded: (piece: Piece) => unknown,
  gone: AbortController,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next: IteratorResult<Piece> | null = first;
  return new ReadableStream({
    async pull(controller) {
      try {
        const result = next ?? (await pieces.next());
        next = null;
        if (result.done !== true) {
          controller.enqueue(encoder.encode(`data: ${JSON.stringify(worded(result.value))}\n\n`));
          return;
        }
      } catch (error) {
        controller.enqueue(encoder.encode(`data: ${JSON.stringify({ error: { message: messageOf(error) } })}\n\n`));
      }
      controller.enqueue(encoder.encode('data: [DONE]\n\n'));
      controller.close();
    },
    cancel: () => gone.abort(),
  });
}

function kindOf(status: number): string {
  return status === 404 ? 'NotFoundError' : status < 500 ? 'BadRequestError' : 'InternalServerError';
}
