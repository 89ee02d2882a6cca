import type { VersionSpan } from '../../workflows/contracts/trace.ts';
import { isLoaded, publishByLora } from './adapters.ts';
import { invalid } from './checks.ts';
import { createEngineConnection } from './connection.ts';
import type { Engine, EngineCapacity, EngineOptions, GenerateEvent, GenerateRequest } from './engine.ts';
import { createQuarantine } from './quarantine.ts';
import { createServedModels, versionOfWeights } from './served.ts';
import { capacityOf } from './vllm/capacity.ts';
import { completionsRoute, generateOver, generateRoute, RouteMissing } from './vllm/generate.ts';
import { healthOf } from './vllm/health.ts';
import { holdVersion, releaseVersions } from './vllm/hold.ts';
import { adapterRoutes, labelOf, publishByReload } from './vllm/publish.ts';

/**
 * vLLM 0.20 and later over HTTP, and whatever speaks its subset.
 *
 * Not covered: servers behind a load balancer (each replica is an engine of its own), logprobs at temperatures other than 1
 * unless the server runs with `--logprobs-mode processed_logprobs`.
 */
export function createVllmEngine(options: EngineOptions): Engine {
  const { model, method, baseVersion = null, keepAdapters = 2 } = options;
  const connection = createEngineConnection(options.url, options.apiKey);
  const served = createServedModels(connection, { model, method, baseVersion });
  const quarantine = createQuarantine();
  let route = generateRoute;
  let capacity: EngineCapacity | null = null;

  async function weightVersion(signal: AbortSignal): Promise<number> {
    const label = await labelOf(connection, signal);
    if (label !== null) return versionOfWeights(label, baseVersion, connection.url);
    throw invalid(`${connection.url}: expected version spans or /weight_info, got neither; publish as LoRA adapters`);
  }

  async function* generateBy(request: GenerateRequest, signal: AbortSignal): AsyncGenerator<GenerateEvent> {
    const { name, version } = await served.current(signal, request.policyVersion);
    // The generate route sends spans; the other one can only be asked before and after.
    const before = version === null && route === completionsRoute ? await weightVersion(signal) : null;
    const attribute = async (tokens: number, aborted: AbortSignal): Promise<readonly VersionSpan[] | null> => {
      if (version !== null) return [{ version, start: 0, end: tokens }];
      if (before === null) return null;
      // Weights may have changed on the way: the older version is the one that staleness must count.
      return [{ version: Math.min(before, await weightVersion(aborted)), start: 0, end: tokens }];
    };
    yield* generateOver({ connection, route, model: name, attribute, baseVersion }, request, signal);
  }

  return {
    url: connection.url,

    async *generate(request, signal) {
      quarantine.check();
      try {
        yield* generateBy(request, signal);
      } catch (error) {
        if (!(error instanceof RouteMissing) || route === completionsRoute) throw error;
        route = completionsRoute;
        yield* generateBy(request, signal);
      }
    },

    async health(signal) {
      try {
        const health = await healthOf(connection, { model, method }, signal);
        capacity ??= await capacityOf(connection, signal);
        return { ...health, capacity };
      } catch (error) {
        // What comes back may be another server.
        capacity = null;
        throw error;
      }
    },

    async publish(publication, signal) {
      if (publication.method === 'lora') {
        await publishByLora(connection, { model, keep: keepAdapters, routes: adapterRoutes }, publication, signal);
        served.forget();
      } else {
        await quarantine.during(() => publishByReload(connection, publication, signal));
        await releaseVersions(connection, { model, keep: publication.keep ?? [] }, signal);
      }
    },

    async hold(version, signal) {
      served.forget();
      return (method === 'lora' ? isLoaded : holdVersion)(connection, { model, version }, signal);
    },
  };
}
