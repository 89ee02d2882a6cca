import type { VersionSpan } from '../../workflows/contracts/trace.ts';
import { isLoaded } from './adapters.ts';
import { invalid } from './checks.ts';
import type { Engine, EngineCapacity, EngineOptions, GenerateEvent, GenerateRequest } from './engine.ts';
import { createHttpEngine, type EngineDialect, type EngineServer } from './http-engine.ts';
import { adapterPrefix, versionOfWeights } from './labels.ts';
import type { SelectedModel } from './model-selection.ts';
import { completionsRoute, generateOver, generateRoute, RouteMissing } from './vllm/generate.ts';
import { capacityOf, healthOf } from './vllm/health.ts';
import { pinWeights, unpinWeights } from './vllm/pin.ts';
import { adapterRoutes, labelOf, publishWeights } from './vllm/publish.ts';

/**
 * Drives vLLM 0.20 and later over HTTP, and any server that implements the same subset of its API.
 *
 * Not covered: servers behind a load balancer (each replica is an engine of its own), logprobs at temperatures other than 1
 * unless the server runs with `--logprobs-mode processed_logprobs`.
 */
export function createVllmEngine(options: EngineOptions): Engine {
  return createHttpEngine(options, createVllmDialect);
}

function createVllmDialect(server: EngineServer): EngineDialect {
  const { connection, model, policy, method, baseVersion } = server;
  const wanted = { policy, baseVersion };
  const prefix = adapterPrefix(model, policy);
  let route = generateRoute;
  let capacity: EngineCapacity | null = null;

  async function weightVersion(signal: AbortSignal): Promise<number> {
    const label = await labelOf(connection, signal);
    if (label !== null) return versionOfWeights(label, wanted, connection.url);
    throw invalid(`${connection.url}: expected version spans or /weight_info, got neither; publish as LoRA adapters`);
  }

  async function* generateOnce(
    { name, version }: SelectedModel,
    request: GenerateRequest,
    signal: AbortSignal,
  ): AsyncGenerator<GenerateEvent> {
    // The generate route sends spans; on the completions route the label is read before and after.
    const before = version === null && route === completionsRoute ? await weightVersion(signal) : null;
    const attribute = async (tokens: number): Promise<readonly VersionSpan[] | null> => {
      if (version !== null) return [{ version, start: 0, end: tokens }];
      if (before === null) return null;
      // The weights may have changed in between: staleness must be counted from the older version.
      return [{ version: Math.min(before, await weightVersion(signal)), start: 0, end: tokens }];
    };
    yield* generateOver({ connection, route, model: name, attribute, wanted }, request, signal);
  }

  return {
    adapterRoutes,

    async *generate(selected, request, signal) {
      try {
        yield* generateOnce(selected, request, signal);
      } catch (error) {
        if (!(error instanceof RouteMissing) || route === completionsRoute) throw error;
        route = completionsRoute;
        yield* generateOnce(selected, request, signal);
      }
    },

    async health(signal) {
      const health = await healthOf(connection, { model, policy, method }, signal);
      capacity ??= await capacityOf(connection, signal);
      return { ...health, capacity };
    },

    publishByReload: (publication, signal) => publishWeights(connection, publication, signal),
    pinVersion: (version, signal) =>
      (method === 'lora' ? isLoaded : pinWeights)(connection, { model, policy, prefix, version }, signal),
    unpinVersions: (keep, signal) => unpinWeights(connection, { prefix, keep }, signal),

    forgetServer() {
      route = generateRoute;
      capacity = null;
    },
  };
}
